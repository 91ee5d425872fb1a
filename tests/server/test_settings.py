"""A setting that is wrong ends the start of a server with an error that names it."""

from __future__ import annotations

import pytest

from memorist.config import Settings
from memorist.errors import MemoristError
from memorist.server.http.run import Address, make_app, resolve_auth


@pytest.mark.parametrize(
    ("named", "settings"),
    [
        ("MEMORIST_URL", {"URL": "ftp://secret"}),
        ("MEMORIST_HOSTS", {"HOSTS": "http://a.example"}),
        ("MEMORIST_ORIGINS", {"ORIGINS": "*"}),
        ("MEMORIST_JWT_KEY", {"JWT_ISSUER": "x"}),  # without a key it would be open to all
        ("MEMORIST_JWT_KEY", {"JWT_AUDIENCE": "x"}),
        ("MEMORIST_JWT_KEY", {"JWT_KEY": "\udcff" * 40}),
        ("MEMORIST_JWT_JWKS_URL", {"JWT_JWKS_URL": "https://"}),
        ("MEMORIST_JWT_JWKS_URL", {"JWT_JWKS_URL": "https://secret@a.example/keys"}),
        ("MEMORIST_MODEL: ", {"MODEL": "secret"}),
        ("MEMORIST_MODEL: ", {"MODEL": "strange:secret"}),
        ("MEMORIST_MODEL_URL", {"MODEL": "stub", "MODEL_URL": "file:///secret"}),
        ("MEMORIST_LARGER_MODEL: ", {"LARGER_MODEL": "secret"}),
        ("MEMORIST_SUMMARY_PROMPT", {"SUMMARY_PROMPT": "\udcff"}),
        ("MEMORIST_USER", {"USER": "\udcff"}),
        ("user", {"USER": "x" * 70_000}),
        ("tenant", {"TENANT": "a/store"}),
    ],
)
def test_a_wrong_setting_is_named(named: str, settings: dict[str, str]) -> None:
    environment = {f"MEMORIST_{name}": value for name, value in settings.items()}
    with pytest.raises(MemoristError) as refused:
        make_app(_resolved({"MEMORIST_URL": ":memory:", **environment}))
    assert named in str(refused.value)
    assert "secret" not in str(refused.value)


def _resolved(environment: dict[str, str]) -> Settings:
    settings = Settings.from_environment(environment)
    return resolve_auth(settings, Address("127.0.0.1", 0), keys=False)
