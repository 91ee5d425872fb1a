"""Whether the embedder's training corpus holds anything of the benchmarks that measure it.

`python -m benchmarks.overlap` compares it with all of LoCoMo and LongMemEval, and writes the
fingerprints by which `make test` goes on comparing without the data: hashes of every run of
eight words in LoCoMo, in the questions and in the evidence, and of the speakers' names.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path

from benchmarks.dataset import Dataset
from benchmarks.locomo import Locomo
from benchmarks.longmemeval import LongMemEval

ROOT = Path(__file__).parent.parent
TRAINING = ROOT / "packages/memorist-minilm/training"
FINGERPRINTS = ROOT / "tests/data/benchmark-fingerprints.bin"
HASH_BYTES = 6
RUN_WORDS = 8
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")


def runs(text: str) -> set[str]:
    """Every run of eight words; a shorter text of at least five words is one run."""
    words = [word.lower() for word in _WORD.findall(text)]
    count = max(len(words) - RUN_WORDS + 1, int(len(words) >= 5))
    return {" ".join(words[start : start + RUN_WORDS]) for start in range(count)}


def names(text: str) -> set[str]:
    """Words in capitals, as names are written, each marked as one."""
    return {f"name {word}" for word in _WORD.findall(text) if word.istitle()}


def fingerprint(run: str) -> bytes:
    return blake2b(run.encode(), digest_size=HASH_BYTES).digest()


def read_fingerprints() -> set[bytes]:
    """What `make test` compares with."""
    data = FINGERPRINTS.read_bytes()
    return {data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES)}


def corpus_texts() -> Iterator[tuple[str, str]]:
    """Every text of the corpus, with the name of its writer."""
    sys.path.insert(0, str(TRAINING))
    from memorist_training.corpus import (
        STORIES,
        TALKS,
        read_corpus,
        read_stories,
        texts_of,
        texts_of_story,
    )

    for example in read_corpus():
        for text in texts_of(example):
            yield example.writer, text
    for folder in (STORIES, TALKS):
        for story in read_stories(folder):
            for text in texts_of_story(story):
                yield folder.name, text


def main() -> None:
    """Compare, tell, and write the fingerprints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT / "../shared/data", metavar="DIR")
    folder = parser.parse_args().data
    talks, chats = Locomo.load(folder), LongMemEval.load(folder)
    everything = _all_runs([*_said(talks), *_said(chats), *_asked(talks), *_asked(chats)])
    shared = [(writer, runs(text) & everything) for writer, text in corpus_texts()]
    for writer, found in shared:
        for run in sorted(found):
            print(f"{writer}: {run}")
    evidence = {turn for question in chats.questions for turn in question.turns}
    kept = _all_runs([*_said(talks), *_asked(talks), *_said(chats, evidence), *_asked(chats)])
    speakers = {f"name {name}" for name in _speakers(talks)}
    prints = sorted(map(fingerprint, kept | speakers))
    FINGERPRINTS.write_bytes(b"".join(prints))
    print(f"{sum(len(found) for _, found in shared)} runs of the corpus are in the benchmarks")


def _all_runs(texts: Iterable[str]) -> set[str]:
    return set().union(*map(runs, texts))


def _said(dataset: Dataset, only: set[str] | None = None) -> set[str]:
    users = {question.user for question in dataset.questions}
    return {
        message.text
        for user in users
        for _, messages in dataset.history(user)
        for message in messages
        if only is None or message.message_id in only
    }


def _asked(dataset: Dataset) -> set[str]:
    return {question.text for question in dataset.questions}


def _speakers(dataset: Dataset) -> set[str]:
    users = {question.user for question in dataset.questions}
    talks = [messages for user in users for _, messages in dataset.history(user)]
    return {message.name for messages in talks for message in messages if message.name}


if __name__ == "__main__":
    main()
