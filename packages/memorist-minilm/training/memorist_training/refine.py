"""Teach a trained reader what was written since: `python -m memorist_training.refine g h`.

Takes the sittings whose letters are named, and minutes on a CPU where a training needs a GPU. Each
step has some of the new messages, with their labels, and some of the others, of which the reader
should go on saying what it says.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from memorist_training.batches import Batches
from memorist_training.claims import NO_BUCKET, Exchange, Told, split
from memorist_training.prepare import PACKAGE, prepare_reader, read_prepared_claims
from memorist_training.reader import (
    READER,
    Readers,
    Recipe,
    changes,
    key_of,
    measure,
    reading_loss,
    targets,
)

LONGEST = 40  # words of an earlier message
MEASURED = 10  # of the earlier messages held out, every so many


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """How much is taught: so many steps, each with messages of both kinds."""

    count: int = 360
    rate: float = 2e-4
    new: int = 24
    earlier: int = 16
    slow: float = 0.99


def trained(base: Mapping[str, np.ndarray], file: Path) -> Readers:
    """The reader whose changes a training wrote."""
    sys.path.insert(0, str(PACKAGE))
    from published import reader

    own, layers = reader(dict(base), file)
    model = Readers(base, count=1, dropout=Recipe().dropout)
    with torch.no_grad():
        for name, array in layers.items():
            model.own[key_of(name)][0] = torch.from_numpy(array)
        model.shapes[0] = torch.from_numpy(own["shapes"])
        model.unknown[0, :NO_BUCKET] = torch.from_numpy(own["unknown"])
        for name in ("head", "head_bias"):
            whole = [own[name], own[name.replace("head", "category")]]
            getattr(model, name)[0] = torch.from_numpy(np.concatenate(whole, axis=-1))
    return model


def refine(
    model: Readers, before: Readers, new: Sequence[Told], earlier: Sequence[Told], steps: Steps
) -> None:
    """Teach the model the new messages; `before` is what it was."""
    recipe = replace(Recipe(), teachers=1)
    torch.manual_seed(recipe.seed)
    chosen = random.Random(recipe.seed).sample(
        earlier, min(len(earlier), steps.count * steps.earlier)
    )
    taught = Batches(
        new,
        exchange=Exchange([*new, *chosen], recipe.exchanged),
        seed=recipe.seed,
        epochs=1 + steps.count * steps.new // len(new),
        size=steps.new,
        hidden=recipe.hidden,
    )
    kept = Batches(chosen, seed=recipe.seed + 1, epochs=2, size=steps.earlier, hidden=recipe.hidden)
    learning = list(model.parameters())
    optimizer = torch.optim.AdamW(learning, lr=steps.rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, steps.rate, total_steps=steps.count + 1, pct_start=0.1
    )
    slow = [it.detach().clone() for it in learning]
    for step in range(steps.count):
        loss = torch.zeros(())
        for batch, trust in ((taught[step], 0.0), (kept[step], 1.0)):
            wanted = targets(batch, before, replace(recipe, trust=trust))
            loss = loss + reading_loss(model(batch), batch, wanted)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(learning, 1.0)
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            torch._foreach_lerp_(slow, learning, 1 - min(steps.slow, (step + 1) / (step + 11)))
        if step % 20 == 0:
            print(f"{step} of {steps.count}: {loss.item():.4f}", file=sys.stderr)
    with torch.no_grad():
        for mine, mean in zip(learning, slow, strict=True):
            mine.copy_(mean)


def main() -> None:
    """Refine the reader that is there, and say how well both read what neither has seen."""
    made = argparse.ArgumentParser(prog="memorist_training.refine", description=__doc__)
    made.add_argument("sittings", nargs="+", help="letters of the files to learn from")
    made.add_argument("--prepared", type=Path, default=Path("prepared-reader.npz"))
    made.add_argument("--reader", type=Path, default=READER)
    options = made.parse_args()
    if not options.prepared.exists():
        prepare_reader(options.prepared)
    messages, base = read_prepared_claims(options.prepared)
    kept, held_out = split(messages)

    def is_new(message: Told) -> bool:
        return message.writer.partition("-")[2] in options.sittings

    before, model = (trained(base, options.reader) for _ in range(2))
    new = [it for it in kept if is_new(it)]
    earlier = [it for it in kept if it.labelled and not is_new(it) and len(it.words) < LONGEST]
    refine(model.train(), before.eval(), new, earlier, Steps())
    np.savez_compressed(options.reader, **changes(model, base))
    some = {
        "new": [it for it in held_out if is_new(it)],
        "earlier": [it for it in held_out if not is_new(it)][::MEASURED],
    }
    for name, one in (("before", before), ("after", model.eval())):
        figures = {which: measure(one, messages) for which, messages in some.items()}
        print(json.dumps({name: figures}), file=sys.stderr)


if __name__ == "__main__":
    main()
