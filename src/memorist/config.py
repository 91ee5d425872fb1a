"""Settings: one table of what can be set from outside, and the only reader of the environment."""

import os
import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, field
from pathlib import Path
from typing import Any, Self

from memorist import defaults
from memorist.errors import ConfigError

_NUMBER = re.compile(r"[0-9]{1,11}(\.[0-9]{1,6})?")


def _one_of(*choices: str) -> Any:
    """A setting with these values; the first is the default."""
    return field(default=choices[0], metadata={"choices": choices})


def _number(default: float, least: float, most: float) -> Any:
    """A setting that is a number in this range, with decimals if the default has some."""
    return field(default=default, metadata={"range": (least, most)})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What can be set from outside, each as MEMORIST_<NAME>, and its default."""

    url: str
    key: str = field(default="", repr=False)
    tenant: str = "default"
    user: str = "me"
    agent: str = ""
    durability: str = _one_of("full", "normal")
    max_message_bytes: int = _number(1_048_576, 1, 2**31 - 1)
    embedder: str = _one_of("minilm", "static", "none")
    model: str = ""
    model_url: str = ""
    model_key: str = field(default="", repr=False)
    model_window: int = _number(16_000, 4_000, 10**9)  # the tools alone may take a thousand
    larger_model: str = ""
    larger_model_threshold_pct: int = _number(defaults.LARGER_MODEL_THRESHOLD_PCT, 0, 100)
    system: str = ""
    recall_deadline_ms: int = _number(defaults.RECALL_DEADLINE_MS, 1, 10_000)
    memory_compression_threshold_pct: int = _number(defaults.COMPRESSION_THRESHOLD_PCT, 0, 100)
    memory_compression_target_tokens: int = _number(defaults.COMPRESSION_TARGET_TOKENS, 1, 10**9)
    messages_to_keep: int = _number(defaults.MESSAGES_TO_KEEP, 0, 10**9)
    summary_prompt: str = ""
    summary_prefix: str = ""
    importance_score: float = _number(defaults.IMPORTANCE_SCORE, 0.0, 1.0)
    summarize_every: int = _number(defaults.SUMMARIZE_EVERY, 1, 10**9)
    force_update: bool = _number(defaults.FORCE_UPDATE, 0, 1)
    auth: str = _one_of("auto", "on", "off")
    rate: float = _number(100.0, 0.0, 10.0**9)
    hosts: str = ""
    origins: str = ""
    jwt_key: str = field(default="", repr=False)
    jwt_jwks_url: str = ""
    jwt_issuer: str = ""
    jwt_audience: str = ""
    jwt_tenant_claim: str = "tenant"
    log_level: str = _one_of("warning", "debug", "info", "error")
    log_format: str = _one_of("text", "json")
    access_log: str = _one_of("off", "on")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The settings of the environment; ConfigError where one cannot be what it is."""
        names = cls.__dataclass_fields__
        given = {name: _read(name, environment) for name in names if name != "url"}
        return cls(url=environment.get("MEMORIST_URL") or str(default_path()), **given)


def _read(name: str, environment: Mapping[str, str]) -> Any:
    """One setting of the environment, or else its default in the table."""
    row: Field[Any] = Settings.__dataclass_fields__[name]
    variable = f"MEMORIST_{name.upper()}"
    text = environment.get(variable)
    if not text:
        return row.default
    if any("\ud800" <= character <= "\udfff" for character in text):  # bytes that are no UTF-8
        raise ConfigError(f"{variable} is not text in UTF-8")
    if text not in row.metadata.get("choices", (text,)):
        raise ConfigError(f"{variable} is one of {', '.join(row.metadata['choices'])}")
    if "range" not in row.metadata:
        return text
    least, most = row.metadata["range"]
    kind = float if isinstance(row.default, float) else int
    decimals = _NUMBER.fullmatch(text)
    is_number = decimals and (kind is float or not decimals[1])
    if not is_number or not least <= kind(text) <= most:
        whole = "" if kind is float else "whole "
        raise ConfigError(f"{variable} is a {whole}number from {least:,} to {most:,}")
    value: float = kind(text)
    return bool(value) if isinstance(row.default, bool) else value


def default_path() -> Path:
    """The database in the user's data folder."""
    from platformdirs import user_data_path  # here, so that `import memorist` stays light

    return user_data_path("memorist", appauthor=False) / "memorist.db"
