"""Settings: the only reader of the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from recollect.errors import ConfigError

_CHOICES = {"durability": ("full", "normal"), "embedder": ("minilm", "static", "none")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What can be set from outside, each as RECOLLECT_<NAME>."""

    url: str
    tenant: str = "default"
    user: str = "me"
    agent: str = ""
    durability: str = "full"
    embedder: str = "minilm"
    model: str = ""
    model_url: str = ""
    model_key: str = field(default="", repr=False)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Read RECOLLECT_URL, _TENANT, _USER, _AGENT, _DURABILITY, _EMBEDDER and _MODEL."""
        given = {
            name: environment[f"RECOLLECT_{name.upper()}"]
            for name in cls.__dataclass_fields__
            if environment.get(f"RECOLLECT_{name.upper()}")
        }
        for name, choices in _CHOICES.items():
            if given.get(name, choices[0]) not in choices:
                raise ConfigError(f"RECOLLECT_{name.upper()} is one of {', '.join(choices)}")
        if "url" not in given:
            given["url"] = str(default_path())
        return cls(**given)


def default_path() -> Path:
    """The database in the user's data folder."""
    from platformdirs import user_data_path  # here, so that `import recollect` stays light

    return user_data_path("recollect", appauthor=False) / "recollect.db"
