"""Secrets are named by kind; what only looks random is left alone."""

from __future__ import annotations

import pytest

from memorist.language.unsafe import find_secrets

SECRETS = [
    ("sk-proj-" + "aB3dE6gH9jK2mN5pQ8rT1vW4", "openai key"),
    ("sk-ant-" + "api03-aB3dE6gH9jK2mN5pQ8rT", "anthropic key"),
    ("AKIA" + "IOSFODNN7EXAMPLE", "aws key"),
    ("ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8", "github token"),
    ("xoxb-" + "123456789012-abcdefGHIJ", "slack token"),
    ("mk_" + "0123456789abcdef_" + "aB3dE6gH9jK2mN5pQ8rT1vW4xY7zA0bC3dE6fG9hJ2k", "memorist key"),
    ("-----BEGIN RSA PRIVATE KEY-----", "private key"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N", "jwt"),
    ("postgres://app:hunter2@db.example.com/app", "url credentials"),
    ("redis://:p4ssw0rd@cache:6379/0", "url credentials"),
    ("curl -s -u app:hunter2 https://example.com", "command line"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY", "password"),
    ('{"password": "hunter2"}', "password"),
    ("das WLAN-Passwort lautet Blau42Wal", "password"),
    ("my verification code is 482913", "password"),
    ("the password of my laptop was changed to orange5tree", "password"),
    ("password: hunter2", "password"),
    ("the wifi password is Tr0ub4dor", "password"),
    ("das Passwort lautet Blau42Wal", "password"),
    ("la contraseña del wifi es Lagarto_88", "password"),
    ("mon mdp de la box c'est Zx9!trombone-71", "password"),
    ("пароль: Щука1987", "password"),
    ("密码是 Panda2024", "password"),
    ("my card is 4111 1111 1111 1111", "credit card"),
    ("please pay to DE89 3704 0044 0532 0130 00", "iban"),
    ("my ssn is 078-05-1120", "identity number"),
    ("my passport number is X12345678", "identity number"),
    ("meine Steuer-ID ist 12345678901", "identity number"),
    ("mi DNI es 12345678Z", "identity number"),
    ("mon numéro de sécu est 1 85 05 78 006 084 36", "identity number"),
    ("номер паспорта 4509 123456", "identity number"),
    ("我的身份证号是11010519491231002X", "identity number"),
    ("use Zk4pQ9xW2vB7nM1tR6yL3cH8 for it", "token"),
]


@pytest.mark.parametrize(("text", "kind"), SECRETS, ids=range(len(SECRETS)))
def test_a_secret_is_found_and_named(text: str, kind: str) -> None:
    assert kind in find_secrets(text)


@pytest.mark.parametrize(
    "text",
    [
        "the id is 01890a5d-ac96-774b-bcce-b302099a8057",
        "fixed in 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4",
        "see /usr/lib/python3/dist-packages/Some_Long_File_Name_With_Numbers_2024.py",
        "call getUserByIdentifierAndOrganisation2 first",
        "I forgot my password again",
        "The password is wrong",
        "I moved the secret to page 4",
        "the security code is easy to read",
        "set password: <your password>",
        "my card number ends in 1111",
        "order 4111 1111 1111 1112",
        "DE89 3704 0044 0532 0130 01 is no account",
        "https://example.com/a?b=c",
        "I pinned numpy at 2.1",
        "my passport expires in 2027",
        "the order number is 123456",
        "ich schaffe nie 10000 Schritte am Tag",
    ],
)
def test_what_is_no_secret_is_left_alone(text: str) -> None:
    assert find_secrets(text) == []
