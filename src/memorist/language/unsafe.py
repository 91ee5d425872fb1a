"""Unsafe text, which must not become a memory: secrets, and prompt injections.

The patterns of injections stand in `data/<language>/injection.toml`, by the way in which they
command. Those under `always` are refused whoever says them; those under `untrusted` only where they
come from a web page, a tool or an import: a user may ask for answers in German from now on.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache

from memorist.language.text import LANGUAGES, data

# For each kind of secret a substring that it has, and its pattern. The substring is searched for
# first, which is fast; every pattern is bounded, so that long texts take linear time.
_SHAPES: Mapping[str, tuple[str, str]] = {
    "private key": ("PRIVATE KEY", r"-----BEGIN (?:[A-Z]{2,10} ){0,3}PRIVATE KEY"),
    "openai key": ("sk-", r"\bsk-(?:proj-|svcacct-|or-v1-)?(?!ant-)[A-Za-z0-9_-]{20,200}"),
    "anthropic key": ("sk-ant-", r"\bsk-ant-[A-Za-z0-9_-]{20,200}"),
    "aws key": ("A", r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}\b"),
    "github token": ("gh", r"\b(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{40,255})"),
    "gitlab token": ("glpat-", r"\bglpat-[A-Za-z0-9_-]{20,64}"),
    "google key": ("AIza", r"\bAIza[A-Za-z0-9_-]{35}"),
    "google token": ("ya29.", r"\bya29\.[A-Za-z0-9_-]{20,300}"),
    "slack token": ("xox", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,200}"),
    "slack webhook": ("hooks.slack.com", r"hooks\.slack\.com/services/[A-Za-z0-9/]{20,80}"),
    "stripe key": ("_", r"\b(?:sk|rk|whsec)_(?:live|test)_[A-Za-z0-9]{16,200}"),
    "memorist key": ("mk_", r"\bmk_[0-9a-f]{16}_[A-Za-z0-9_-]{43}"),
    "huggingface token": ("hf_", r"\bhf_[A-Za-z0-9]{30,64}\b"),
    "npm token": ("npm_", r"\bnpm_[A-Za-z0-9]{36}\b"),
    "pypi token": ("pypi-", r"\bpypi-[A-Za-z0-9_-]{50,300}"),
    "sendgrid key": ("SG.", r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,64}"),
    "telegram token": (":AA", r"\b\d{8,10}:AA[A-Za-z0-9_-]{33}\b"),
    "digitalocean token": ("_v1_", r"\bdo[opr]_v1_[a-f0-9]{64}\b"),
    "groq key": ("gsk_", r"\bgsk_[A-Za-z0-9]{40,64}\b"),
    "xai key": ("xai-", r"\bxai-[A-Za-z0-9]{40,100}\b"),
    "azure key": ("AccountKey=", r"\bAccountKey=[A-Za-z0-9+/=]{40,100}"),
    "jwt": ("eyJ", r"\beyJ[\w-]{8,2000}\.eyJ[\w-]{8,2000}\.[\w-]{10,1000}"),
    "url credentials": ("://", r"\b[a-z][a-z0-9+]{1,12}://[^\s/:@]{1,60}:[^\s/:@]{1,100}@[\w.-]"),
    "bearer token": ("Bearer ", r"\bBearer (?=[A-Za-z_.~+/-]{0,60}\d)[A-Za-z0-9_.~+/-]{20,500}"),
}
_NAMES = "pass pwd pin kennwort contrase clave парол пин key secret token 密码 口令".split()
_PASSWORD = re.compile(
    r"(?<![\w-])(?:passwor[dt]s?|passwd|pwd|passphrase|pass ?code|pin(?: ?code)?|passwort|kennwort"
    r"|contraseña|clave|пароль|пароля|пин-?код|api[_ -]?key|secret(?:[_ -]?key)?|access[_ -]?token"
    r"|auth[_ -]?token|client[_ -]?secret|密码|口令)"
    r"(?:\s{1,2}(?:for|to|of|für|von|de|para|от|для|на)(?:\s{1,2}[^\s:=]{1,30}){1,4})?"
    r"\s{0,3}(?P<link>[:=：]|is\b|ist\b|lautet\b|es\b|это\b|[—–-]\s|是|为|)\s{0,3}[\"'`]?"
    r"(?P<value>[^\s\"'`,;。，]{3,100})",
    re.IGNORECASE,
)
_NO_PASSWORD = re.compile(r"[<\[{(*.…$%xX•]|(?:your|the|os\.|process\.|get|None|null|env)\b", re.I)
_CARD = re.compile(r"(?<![\w.-])(?<!\d )\d(?:[ -]?\d){12,}+(?![\w-])")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b")
_TOKEN = re.compile(r"(?<![\w/+=.:@%&?#-])[A-Za-z0-9_+-]{24,}+={0,2}(?![\w/+=.@-])")
_ORDINARY = re.compile(r"[0-9a-f-]+|[0-9A-F-]+|[A-Z_-]+\d*|\d+")
_PICTURE = re.compile(r"data:[\w.+/-]{1,80};base64,[A-Za-z0-9+/=]*+")
_MOST_CHARS = 128  # in a token; longer ones are files
_ENOUGH_BITS = 4.0
LOOK_AT_CHARS = 20_000  # for injections


def find_secrets(text: str) -> list[str]:
    """The kinds of secrets a text holds, by name; never the secrets themselves."""
    text = _PICTURE.sub(" ", text)
    likely = [(name, shape) for name, (mark, shape) in _SHAPES.items() if mark in text]
    found = [name for name, shape in likely if re.search(shape, text)]
    lower = text.lower()
    if any(name in lower for name in _NAMES) and any(map(_is_password, _PASSWORD.finditer(text))):
        found.append("password")
    if any(_is_card(match[0]) for match in _CARD.finditer(text)):
        found.append("credit card")
    if any(_is_iban(match[0]) for match in _IBAN.finditer(text)):
        found.append("iban")
    if not found and any(_is_random(match[0]) for match in _TOKEN.finditer(text)):
        found.append("token")
    return found


def _is_password(match: re.Match[str]) -> bool:
    """Whether the word after "password" is one, and no placeholder or word of the sentence."""
    value = match["value"].rstrip(".!?)")
    if len(value) < 3 or _NO_PASSWORD.match(value):
        return False
    if match["link"] and match["link"] in ":=：":
        return True
    # "The password is wrong" has none; a word with digits or punctuation inside may be one.
    return not value.isalpha() and any(map(str.isdigit, value))


def _is_card(text: str) -> bool:
    """Whether a number has the length, first digit and Luhn checksum of a card."""
    if len(text) > 19:
        return False
    digits = [int(char) for char in text if char.isdigit()]
    if digits[0] not in (2, 3, 4, 5, 6) or len(digits) > 16 or len(set(digits)) < 2:
        return False
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_iban(text: str) -> bool:
    """Whether an IBAN has the right checksum."""
    plain = text.replace(" ", "")
    if not 15 <= len(plain) <= 34:
        return False
    return int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1


def _is_random(token: str) -> bool:
    """Whether a token looks random: mixed letters and digits, no hash, UUID or words."""
    if len(token) > _MOST_CHARS or _ORDINARY.fullmatch(token):
        return False
    if not all(any(map(kind, token)) for kind in (str.isdigit, str.islower, str.isupper)):
        return False
    counts = Counter(token).values()
    bits = -sum(n / len(token) * math.log2(n / len(token)) for n in counts)
    # Identifiers are made of words: getUserById2, my-long-file-name-2.
    words = re.findall(r"[A-Z]?[a-z]{4,}|\d{1,4}(?!\d)", token)
    return bits >= _ENOUGH_BITS and sum(map(len, words)) < len(token) * 0.6


def injections(text: str, *, trusted: bool = True) -> list[str]:
    """The ways in which a text tries to command its reader, by name."""
    start = text[:LOOK_AT_CHARS]
    kinds = ("always",) if trusted else ("always", "untrusted")
    return [
        name for kind in kinds for name, pattern in _patterns(kind).items() if pattern.search(start)
    ]


@cache
def _patterns(kind: str) -> dict[str, re.Pattern[str]]:
    """One pattern for each way, over all languages; compiled when first needed."""
    lines: dict[str, list[str]] = {}
    for code in LANGUAGES:
        for name, written in data(code, "injection")[kind].items():
            lines.setdefault(name, []).extend(filter(None, written.splitlines()))
    return {
        name: re.compile("|".join(each), re.IGNORECASE | re.MULTILINE)
        for name, each in lines.items()
    }
