"""Secrets that must not become memories: keys, passwords, cards and accounts."""

from __future__ import annotations

import math
import re
from collections import Counter

_LONGEST_LINE = 4_000
# Every pattern begins with something rare and is bounded, so that a long text costs no more than
# reading it.
_SHAPES = {
    "private key": r"-----BEGIN (?:[A-Z]{2,10} ){0,3}PRIVATE KEY",
    "openai key": r"\bsk-(?:proj-|svcacct-|ant-|or-v1-)?[A-Za-z0-9_-]{20,200}",
    "aws key": r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}\b",
    "github token": r"\b(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{40,255})",
    "gitlab token": r"\bglpat-[A-Za-z0-9_-]{20,64}",
    "google key": r"\b(?:AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,300}|GOCSPX-[\w-]{20,40})",
    "slack token": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,200}|hooks\.slack\.com/services/[A-Za-z0-9/]{20,80}",
    "stripe key": r"\b(?:sk|rk|pk|whsec)_(?:live|test)_[A-Za-z0-9]{16,200}",
    "huggingface token": r"\bhf_[A-Za-z0-9]{30,64}\b",
    "npm token": r"\bnpm_[A-Za-z0-9]{36}\b",
    "pypi token": r"\bpypi-[A-Za-z0-9_-]{50,300}",
    "sendgrid key": r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,64}",
    "twilio key": r"\b(?:SK|AC)[0-9a-f]{32}\b",
    "telegram token": r"\b\d{8,10}:AA[A-Za-z0-9_-]{33}\b",
    "digitalocean token": r"\bdo[opr]_v1_[a-f0-9]{64}\b",
    "groq key": r"\bgsk_[A-Za-z0-9]{40,64}\b",
    "xai key": r"\bxai-[A-Za-z0-9]{40,100}\b",
    "azure key": r"\bAccountKey=[A-Za-z0-9+/=]{40,100}",
    "jwt": r"\beyJ[A-Za-z0-9_-]{8,2000}\.eyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{10,1000}",
    "url credentials": r"\b[a-z][a-z0-9+]{1,12}://[^\s/:@]{1,60}:[^\s/:@]{1,100}@[\w.-]",
    "bearer token": r"\b(?:Bearer|Basic)\s{1,3}(?=[A-Za-z_.~+/-]{0,60}\d)[A-Za-z0-9_.~+/-]{20,500}",
}
_PASSWORD = re.compile(
    r"(?<![\w-])(?:passwor[dt]s?|passwd|pwd|passphrase|pass ?code|pin(?: ?code)?|passwort|kennwort"
    r"|contraseña|clave|пароль|пароля|пин-?код|api[_ -]?key|secret(?:[_ -]?key)?|access[_ -]?token"
    r"|auth[_ -]?token|client[_ -]?secret|密码|口令)"
    r"(?:\s{1,2}(?:for|to|of|für|von|de|para|от|для|на)(?:\s{1,2}[^\s:=]{1,30}){1,4})?"
    r"\s{0,3}(?P<link>[:=：]|is\b|ist\b|lautet\b|es\b|это\b|[—–-]\s|是|为)\s{0,3}[\"'`]?"
    r"(?P<value>[^\s\"'`,;。，]{3,100})",
    re.IGNORECASE,
)
_NO_PASSWORD = re.compile(r"[<\[{(*.…$%xX•]|(?:your|the|os\.|process\.|get|None|null|env)\b", re.I)
_CARD = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b")
_TOKEN = re.compile(r"(?<![\w/+=.:@%&?#-])[A-Za-z0-9_+-]{24,128}={0,2}(?![\w/+=.@-])")
_ORDINARY = re.compile(r"[0-9a-f-]+|[0-9A-F-]+|[A-Z_-]+\d*|\d+")
_ENOUGH_BITS = 4.0


def find_secrets(text: str) -> list[str]:
    """The kinds of secrets a text holds, by name; never the secrets themselves."""
    found = [name for name, pattern in _patterns() if pattern.search(text)]
    if any(map(_is_password, _PASSWORD.finditer(text))):
        found.append("password")
    if any(_is_card(match[0]) for match in _CARD.finditer(text)):
        found.append("credit card")
    if any(_is_iban(match[0]) for match in _IBAN.finditer(text)):
        found.append("iban")
    if not found and any(_is_random(match[0]) for match in _TOKEN.finditer(text)):
        found.append("token")
    return found


def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    return [(name, re.compile(shape)) for name, shape in _SHAPES.items()]  # re keeps them


def _is_password(match: re.Match[str]) -> bool:
    """Whether what follows "password" is one: not a word of the sentence, not a placeholder."""
    value = match["value"].rstrip(".!?)")
    if len(value) < 3 or _NO_PASSWORD.match(value):
        return False
    if match["link"] in ":=：":
        return True
    # "The password is wrong" tells nothing; digits or signs inside a word do.
    return not value.isalpha() and any(map(str.isdigit, value))


def _is_card(text: str) -> bool:
    """Whether a number has a card's length, first digit and Luhn's checksum."""
    digits = [int(char) for char in text if char.isdigit()]
    if digits[0] not in (2, 3, 4, 5, 6) or len(digits) < 13 or len(set(digits)) < 3:
        return False
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_iban(text: str) -> bool:
    """Whether an account number has its checksum."""
    plain = text.replace(" ", "")
    if not 15 <= len(plain) <= 34:
        return False
    return int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1


def _is_random(token: str) -> bool:
    """Whether a token looks drawn by lot: no hash or UUID, no words, letters and digits mixed."""
    if _ORDINARY.fullmatch(token) or not any(map(str.isdigit, token)):
        return False
    if not (any(map(str.islower, token)) and any(map(str.isupper, token))):
        return False
    counts = Counter(token).values()
    bits = -sum(n / len(token) * math.log2(n / len(token)) for n in counts)
    return bits >= _ENOUGH_BITS and not _reads(token)


def _reads(token: str) -> bool:
    """Whether it is made of words, as identifiers are: getUserById2, my-long-file-name-2."""
    words = re.findall(r"[A-Z]?[a-z]{4,}|\d{1,4}(?!\d)", token)
    return sum(map(len, words)) >= len(token) * 0.6
