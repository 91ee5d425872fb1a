"""A memory with a life in it, for the tests of the page and the pictures of it in the docs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from memorist import Memory

TODAY = datetime(2026, 11, 14, 9, tzinfo=UTC)

# Agent, title, days ago, and what was said; a line that begins with ">" is the agent's.
CONVERSATIONS = [
    (
        "assistant",
        "Settling in",
        260,
        """Hi! I'm Ada. I live in Munich and work at Siemens as a data analyst.
> Nice to meet you, Ada. How can I help?
I'm allergic to peanuts, so keep that in mind when you suggest recipes.
> Noted: no peanuts.
My sister Lena lives in Hamburg. She has two kids.
I prefer short answers, please.
I play the cello in an amateur orchestra every Thursday.""",
    ),
    (
        "assistant",
        "A new job",
        190,
        """I have a job interview at Lumen next week, wish me luck.
> Good luck! Shall we prepare together?
Great news: I got the job. I start at Lumen on 1 June.
> Congratulations!
My new boss is called Oren.""",
    ),
    (
        "assistant",
        "Moving",
        150,
        """We're looking at flats in Berlin because the office is there.
I moved to Berlin in June. No more Munich commutes!
> How do you like it so far?
I love it. The flat is in Neukölln and has a balcony.
My rent is 1,250 euros a month.""",
    ),
    (
        "travel",
        "Norway",
        90,
        """I want to go to Norway in September, two weeks, by train and ferry.
> Which cities would you like to see?
Oslo and Tromsø. Actually it's Bergen, not Tromsø.
I don't fly short distances.
The budget for the trip is 2,000 euros.
> Here is a route: Berlin, Copenhagen, Oslo, Bergen, and back by ferry to Hirtshals.
My passport expires in March 2027.""",
    ),
    (
        "assistant",
        "Everyday things",
        30,
        """I adopted a cat called Miso.
> What a lovely name.
I don't eat meat any more, I'm vegetarian since October.
Remind me to renew my passport before the end of the year.
I quit the orchestra, I'm learning to climb instead.
My dentist appointment is on 3 December at 9.""",
    ),
    (
        "assistant",
        "The weekend",
        1,
        """Lena visits me this weekend with the kids.
> Shall I look for something that children like?
Yes please. She moved to Leipzig, by the way, so she comes by train.
> The technology museum is open on both days.
Good idea. Dinner at home then: something vegetarian.""",
    ),
]

NOTES = """# About Ada

- Answers: short, no bullet points unless asked
- Diet: **vegetarian**, no peanuts
- Weekends: Lena and the kids, climbing

## Open

1. Renew the passport before the end of the year
2. A present for Oren
"""

ARTICLES = [
    (
        "Night trains in Europe",
        "Night trains run between Berlin, Stockholm and Oslo from April to September. A berth in a "
        "couchette costs from 60 euros. Ferries from Hirtshals to Bergen leave three times a week.",
    ),
    (
        "Climbing halls in Berlin",
        "The halls in Neukölln and Wedding are open until eleven. Courses for beginners begin on "
        "the first Saturday of a month.",
    ),
]


class DemoClock:
    """A clock that began to go at TODAY, whatever the day is."""

    def __init__(self) -> None:
        self._lag = datetime.now(UTC) - TODAY

    def __call__(self) -> datetime:
        return datetime.now(UTC) - self._lag


def fill(memory: Memory, user: str = "ada") -> None:
    """Tell a memory Ada's year; its clock should be a DemoClock."""
    for agent, _title, days, text in CONVERSATIONS:
        moment = TODAY - timedelta(days=days)
        chat = memory.session(user=user, agent=agent, new=True)
        for line in text.splitlines():
            role, words = ("assistant", line[2:]) if line[:1] == ">" else ("user", line)
            chat.add(role, words, created_at=moment)
            moment += timedelta(minutes=2)
    memory.notes(user=user, agent="assistant").write("# About Ada\n\n- Answers: short\n")
    memory.notes(user=user, agent="assistant").write(NOTES)
    for title, words in ARTICLES:
        memory.library(user=user, agent="assistant").add(title, words, uri=f"demo:{title}")
    assert memory.jobs.catch_up(300) == 0
