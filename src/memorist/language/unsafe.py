"""Unsafe text, which must not become a memory: secrets, and prompt injections.

Secrets are found by their shapes (`data/shared/secrets.toml`), injections by patterns in
`data/<language>/injection.toml`, by the way in which they command. Those under `always` are refused
whoever says them; those under `untrusted` only where they come from a web page, a tool or an
import: a user may ask for answers in German from now on.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache

from memorist.language.patterns import Pattern, PatternMatch, PatternSet
from memorist.language.text import LANGUAGES, data
from memorist.records.values import normalize

_NO_PASSWORD = re.compile(r"[<\[{(*.…$%xX•]|(?:your|the|os\.|process\.|get|None|null|env)\b", re.I)
_CARD = Pattern(r"(?:^|[^\w.-])(?P<span>\d(?:[ -]?\d){12,})(?:[^\w-]|$)")
_IBAN = Pattern(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b")
_TOKEN = Pattern(r"(?:^|[^\w/+=.:@%&?#-])(?P<span>[A-Za-z0-9_+-]{24,}={0,2})(?:[^\w/+=.@-]|$)")
_ORDINARY = re.compile(r"[0-9a-f-]+|[0-9A-F-]+|[A-Z_-]+\d*|\d+")
_PICTURE = Pattern(r"data:[\w.+/-]{1,80};base64,[A-Za-z0-9+/=]*")
_MOST_CHARS = 128  # in a token; longer ones are files
_ENOUGH_BITS = 4.0
LOOK_AT_CHARS = 20_000  # for injections
# Soft hyphens, joiners, marks of direction, tags: what no reader sees between the letters.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]+"
)


def visible(text: str) -> str:
    """The text without characters that are not seen, by which one word may pass for another."""
    return text if text.isascii() else _INVISIBLE.sub("", text)


def find_secrets(text: str) -> list[str]:
    """The kinds of secrets a text holds, by name; never the secrets themselves."""
    text = _PICTURE.sub(" ", visible(text))
    found = [list(data("shared", "secrets")["shapes"])[n] for n, _ in _shapes().search(text)]
    names, password = _password()
    lower = text.lower()
    if any(name in lower for name in names) and any(map(_is_password, password.finditer(text))):
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
    return PatternSet(map(Pattern, data("shared", "secrets")["shapes"].values()))


@cache
def _password() -> tuple[list[str], Pattern]:
    """Words of which one must be there, and the pattern of a password after its name."""
    written = data("shared", "secrets")["password"]
    return written["names"].split(), Pattern(written["pattern"], ignore_case=True)


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
    text = visible(text[:LOOK_AT_CHARS])
    wide = normalize("NFKC", text)  # letters in other shapes
    return [names[it] for it in pattern_set.numbers(text if text == wide else f"{text}\n{wide}")]


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
