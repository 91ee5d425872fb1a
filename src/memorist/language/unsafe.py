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

from memorist.language.patterns import Pattern, PatternMatch, PatternSet
from memorist.language.text import LANGUAGES, data

_SHAPES: Mapping[str, str] = {
    "private key": r"-----BEGIN (?:[A-Z]{2,10} ){0,3}PRIVATE KEY",
    "openai key": r"\bsk-(?:proj-|svcacct-|or-v1-)?(?!ant-)[A-Za-z0-9_-]{20,200}",
    "anthropic key": r"\bsk-ant-[A-Za-z0-9_-]{20,200}",
    "aws key": r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}\b",
    "github token": r"\b(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{40,255})",
    "gitlab token": r"\bglpat-[A-Za-z0-9_-]{20,64}",
    "google key": r"\bAIza[A-Za-z0-9_-]{35}",
    "google token": r"\bya29\.[A-Za-z0-9_-]{20,300}",
    "slack token": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,200}",
    "slack webhook": r"hooks\.slack\.com/services/[A-Za-z0-9/]{20,80}",
    "stripe key": r"\b(?:sk|rk|whsec)_(?:live|test)_[A-Za-z0-9]{16,200}",
    "memorist key": r"\bmk_[0-9a-f]{16}_[A-Za-z0-9_-]{43}",
    "huggingface token": r"\bhf_[A-Za-z0-9]{30,64}\b",
    "npm token": r"\bnpm_[A-Za-z0-9]{36}\b",
    "pypi token": r"\bpypi-[A-Za-z0-9_-]{50,300}",
    "sendgrid key": r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,64}",
    "telegram token": r"\b\d{8,10}:AA[A-Za-z0-9_-]{33}\b",
    "digitalocean token": r"\bdo[opr]_v1_[a-f0-9]{64}\b",
    "groq key": r"\bgsk_[A-Za-z0-9]{40,64}\b",
    "xai key": r"\bxai-[A-Za-z0-9]{40,100}\b",
    "azure key": r"\bAccountKey=[A-Za-z0-9+/=]{40,100}",
    "jwt": r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{10,}",
    "url credentials": r"\b[a-z][a-z0-9+]{1,12}://[^\s/:@]{1,60}:[^\s/:@]{1,100}@[\w.-]",
    "url parameter": r"[?&](?:token|key|sig|signature|auth|password|secret)=[\w%.~+/-]{6,200}",
    "environment": r"\b[A-Z_]*(?:PASSW(?:OR)?D|SECRET|TOKEN|(?:API|ACCESS)_KEY)=[\w%.~+/-]{4,}",
    "command line": r"--(?:password|passwd|token|api-key|secret)[ =][\w%.~+/]{4,200}",
    "header": r"(?i:\b(?:authorization: ?(?:basic|token)|x-api-key:|cookie:)) ?[\w%.~+/=-]{6,200}",
    "bearer token": r"\bBearer (?=[A-Za-z_.~+/-]{0,60}\d)[A-Za-z0-9_.~+/-]{20,500}",
}
_NAMES = "pass pwd mdp pin kennwort contrase clave парол пин key secret token 密码 口令".split()
_PASSWORD = Pattern(
    r"(?:^|[^\w-])(?:passwor[dt]s?|passwd|pwd|passphrase|pass ?code|pin(?: ?code)?|passwort"
    r"|kennwort|contraseña|clave|mot de passe|mdp|пароль|пароля|пин-?код|api[_ -]?key"
    r"|secret(?:[_ -]?key)?|access[_ -]?token|auth[_ -]?token|client[_ -]?secret|密码|口令)"
    r"(?:\s{1,2}(?:for|to|of|für|von|del?|du|pour|para|от|для|на)(?:\s{1,2}[^\s:=]{1,30}){1,4})?"
    r"\s{0,3}(?P<link>[:=：]|is\b|ist\b|lautet\b|es\b|(?:c['’])?est\b|это|[—–-]\s|是|为|)\s{0,3}"
    r"[\"'`]?(?P<value>[^\s\"'`,;。，]{3,100})",
    ignore_case=True,
)
_NO_PASSWORD = re.compile(r"[<\[{(*.…$%xX•]|(?:your|the|os\.|process\.|get|None|null|env)\b", re.I)
_CARD = Pattern(r"(?:^|[^\w.-])(?P<span>\d(?:[ -]?\d){12,})(?:[^\w-]|$)")
_IBAN = Pattern(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b")
_TOKEN = Pattern(r"(?:^|[^\w/+=.:@%&?#-])(?P<span>[A-Za-z0-9_+-]{24,}={0,2})(?:[^\w/+=.@-]|$)")
_ORDINARY = re.compile(r"[0-9a-f-]+|[0-9A-F-]+|[A-Z_-]+\d*|\d+")
_PICTURE = Pattern(r"data:[\w.+/-]{1,80};base64,[A-Za-z0-9+/=]*")
_MOST_CHARS = 128  # in a token; longer ones are files
_ENOUGH_BITS = 4.0
LOOK_AT_CHARS = 20_000  # for injections


def find_secrets(text: str) -> list[str]:
    """The kinds of secrets a text holds, by name; never the secrets themselves."""
    text = _PICTURE.sub(" ", text)
    found = [list(_SHAPES)[number] for number, _ in _shapes().search(text)]
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


@cache
def _shapes() -> PatternSet:
    return PatternSet(map(Pattern, _SHAPES.values()))


def _is_password(match: PatternMatch) -> bool:
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
    names, pattern_set = _commands(trusted)
    return [names[number] for number in pattern_set.numbers(text[:LOOK_AT_CHARS])]


@cache
def _commands(trusted: bool) -> tuple[list[str], PatternSet]:
    """The ways of commanding, each with a pattern over all languages."""
    lines: dict[str, list[str]] = {}
    for kind in ("always",) if trusted else ("always", "untrusted"):
        for code in LANGUAGES:
            for name, written in data(code, "injection")[kind].items():
                lines.setdefault(name, []).extend(filter(None, written.splitlines()))
    patterns = (Pattern(f"(?m){'|'.join(each)}", ignore_case=True) for each in lines.values())
    return list(lines), PatternSet(patterns)
