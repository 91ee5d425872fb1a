"""`memorist hooks`: in Claude Code's settings, what it shall run to remember by itself."""

import os
import shlex
import sys
from difflib import unified_diff
from pathlib import Path
from typing import Any

import typer

from memorist.cli import options as opt
from memorist.cli.hook import ACTIONS, STORING
from memorist.cli.render import remark
from memorist.cli.settings_files import edited, odd_shape, offer, read
from memorist.config import Settings, default_path

OURS = "-m memorist.cli.hook"
TIMEOUT_S = 10
BACKGROUND = {"async": True, "timeout": 30}  # of hooks that Claude Code need not wait for

hooks = typer.Typer(help="Let Claude Code remember by itself.", no_args_is_help=True)


@hooks.command()
def install(
    user: opt.User = None,
    db: opt.Database = None,
    project: opt.Project = False,
    yes: opt.Yes = False,
) -> None:
    """Let Claude Code remember by itself; shows the change of its settings first, and asks.

    A session starts with what is known, each prompt brings what bears on it, and what was said is
    stored when Claude stops and before it compacts.
    """
    settings = Settings.from_environment()
    url = db or settings.url
    command = [sys.executable, *OURS.split(), "--user", user or settings.user]
    if "://" not in url and url != str(default_path()):
        command += ["--db", str(Path(url).expanduser().absolute())]
    _change(project, yes, shlex.join(command))
    if "://" in url:  # it may hold a password, which does not belong into these settings
        remark("Set MEMORIST_URL, and MEMORIST_KEY for a server, where Claude Code runs.")


@hooks.command()
def remove(project: opt.Project = False, yes: opt.Yes = False) -> None:
    """Take the hooks out of Claude Code's settings again; what it remembers stays."""
    _change(project, yes, None)


def _change(project: bool, yes: bool, command: str | None) -> None:
    """Show the settings with our hooks, or without them, and write them if the user agrees."""
    home = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
    file = Path.cwd() / ".claude/settings.local.json" if project else home / "settings.json"

    def change(content: dict[str, Any]) -> None:
        try:
            _replace(content, command)
        except (AttributeError, KeyError, TypeError):
            raise odd_shape(file) from None

    before = read(file)
    after = edited(before, file, change)
    lines = before.splitlines(), after.splitlines()
    typer.echo("\n".join(unified_diff(*lines, str(file), str(file), lineterm="")))
    offer(file, before, after, yes=yes)


def _replace(content: dict[str, Any], command: str | None) -> None:
    """Put our hooks in place of those there were; the hooks of others stay."""
    events = content.setdefault("hooks", {})
    for event in ACTIONS:
        groups = [group for group in events.get(event, []) if not _is_ours(group)]
        if command:
            hook = {"type": "command", "command": command, "timeout": TIMEOUT_S}
            groups.append({"hooks": [hook | (BACKGROUND if event in STORING else {})]})
        events[event] = groups
        if not groups:
            del events[event]
    if not events:
        del content["hooks"]


def _is_ours(group: dict[str, Any]) -> bool:
    """Whether a group holds our hook alone, as we write it."""
    return [OURS in hook.get("command", "") for hook in group["hooks"]] == [True]
