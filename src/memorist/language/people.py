"""Who is who: the user and those around them, by their names and before these are known."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from memorist.language.text import data
from memorist.records.memories import COUPLES, Fact, plain_text, topic_of

_NAMED = re.compile(r"(?P<role>.+?'s (?P<relation>\w+)) (?P<name>.+)")


@cache
def naming_topics() -> dict[str, int]:
    """The topics of the user's facts that tell names, each with the number of its person."""
    listed = enumerate(data("shared", "predicates")["people"])
    return {
        topic_of("user", predicate): number
        for number, person in listed
        for predicate in person["named_by"]
    }


def names_someone(predicate: str) -> bool:
    """Whether facts with this predicate tell the name of the user or of someone around them."""
    return topic_of("user", predicate) in naming_topics()


def names_user(predicate: str) -> bool:
    """Whether facts with this predicate tell the user's own name."""
    return naming_topics().get(topic_of("user", predicate)) == 0


def is_lifelong(predicate: str) -> bool:
    """Whether facts with this predicate have no beginning, whatever date is told beside them."""
    return predicate in data("shared", "predicates")["lifelong"]


@dataclass(frozen=True, slots=True)
class People:
    """Groups of subjects that mean the same person, each led by the name to show."""

    groups: Sequence[Sequence[str]] = ()
    shared: frozenset[str] = frozenset()  # names that two of them have, in small letters
    known: Mapping[str, str] = field(default_factory=dict[str, str])  # names: what tells them

    @classmethod
    def of(cls, facts: Iterable[Fact]) -> "People":
        """The people that facts name; a name that two of them have means neither.

        Of relatives of whom there may be several, "my sister" means the only one that is named.
        """
        listed = data("shared", "predicates")["people"]
        names: list[dict[str, str]] = [{} for _ in listed]
        known: dict[str, str] = {}
        for fact in facts:
            number = naming_topics().get(fact.topic)
            if number is not None and fact.known_to is None and not (number and fact.valid_to):
                for name in (fact.object, fact.object.split()[0]):
                    names[number].setdefault(plain_text(name), name)
                    known.setdefault(plain_text(name), fact.predicate)
        shared = Counter(name for each in names for name in each)
        alone = [
            not person.get("several") or len({name.split()[0] for name in each}) < 2
            for person, each in zip(listed, names, strict=True)
        ]
        own = [
            [each[name] for name in each if one and shared[name] == 1]
            for each, one in zip(names, alone, strict=True)
        ]
        user, *others = zip(own, (person["called"] for person in listed), strict=True)
        groups = [[*each, *called] for each, called in others if each and called]
        several = frozenset(name for name, count in shared.items() if count > 1)
        return cls([[*user[1], *user[0]], *groups], several, known)

    def knows_otherwise(self, predicate: str, name: str) -> bool:
        """Whether a name is known as that of somebody else: a wife is no colleague."""
        known = self.known.get(plain_text(name), predicate)
        return names_someone(predicate) and known != predicate

    def told(self, subject: str) -> str:
        """Whom a subject such as "user's sister Anna" means: Anna, if there is only one."""
        parts = _NAMED.fullmatch(subject)
        if not parts or parts["relation"] not in data("en", "rules")["relations"]:
            return subject
        own = map(plain_text, self.groups[0]) if self.groups else ()
        is_clear = plain_text(parts["name"]) not in self.shared.union(own)
        return parts["name"] if is_clear else parts["role"]

    def partners(self) -> Sequence[str]:
        """The subjects that mean whom the user is with, by name or not."""
        listed = data("shared", "predicates")["people"]
        called = next(it["called"] for it in listed if COUPLES[0] in it["named_by"])
        return [*dict.fromkeys((*self.same(called[0]), *called))]

    def same(self, subject: str) -> Sequence[str]:
        """The subjects that mean the same person as one, led by the name to show."""
        spelled = plain_text(subject)
        for name in self.groups[0] if self.groups else ():
            if spelled.startswith(start := f"{plain_text(name)}'s "):
                spelled = f"user's {spelled.removeprefix(start)}"
        for group in self.groups:
            if spelled in map(plain_text, group):
                return [*group, *([] if subject in group else [subject])]
        return [subject]


NOBODY = People()
