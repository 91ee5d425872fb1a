"""Settings: the only reader of the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from memorist.errors import ConfigError

_CHOICES = {
    "durability": ("full", "normal"),
    "embedder": ("minilm", "static", "none"),
    "auth": ("auto", "on", "off"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What can be set from outside, each as MEMORIST_<NAME>."""

    url: str
    key: str = field(default="", repr=False)
    tenant: str = "default"
    user: str = "me"
    agent: str = ""
    durability: str = "full"
    max_message_bytes: int = 1_048_576
    embedder: str = "minilm"
    model: str = ""
    model_url: str = ""
    model_key: str = field(default="", repr=False)
    model_window: str = ""
    system: str = ""
    auth: str = "auto"
    rate: str = "100"
    hosts: str = ""
    origins: str = ""
    jwt_key: str = field(default="", repr=False)
    jwt_jwks_url: str = ""
    jwt_issuer: str = ""
    jwt_audience: str = ""
    jwt_tenant_claim: str = "tenant"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Read MEMORIST_URL, _TENANT, _USER, _AGENT, _DURABILITY, _EMBEDDER, _MODEL and _JWT…"""
        given: dict[str, Any] = {
            name: environment[f"MEMORIST_{name.upper()}"]
            for name in cls.__dataclass_fields__
            if environment.get(f"MEMORIST_{name.upper()}")
        }
        for name, choices in _CHOICES.items():
            if given.get(name, choices[0]) not in choices:
                raise ConfigError(f"MEMORIST_{name.upper()} is one of {', '.join(choices)}")
        if limit := given.get("max_message_bytes"):
            is_number = limit.isascii() and limit.isdigit() and len(limit) < 12
            if not is_number or not 0 < int(limit) < 2**31:
                raise ConfigError("MEMORIST_MAX_MESSAGE_BYTES is a whole number from 1 to 2**31")
            given["max_message_bytes"] = int(limit)
        if "url" not in given:
            given["url"] = str(default_path())
        return cls(**given)


def default_path() -> Path:
    """The database in the user's data folder."""
    from platformdirs import user_data_path  # here, so that `import memorist` stays light

    return user_data_path("memorist", appauthor=False) / "memorist.db"
