"""One command: `python -m memorist_training`. See README.md beside this package."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from memorist_training.corpus import read_corpus, read_told, split
from memorist_training.prepare import PACKAGE, prepare


def main() -> None:
    """Prepare, train, measure, and write the adapter."""
    options = parser().parse_args()
    if not options.prepared.exists():
        prepare(options.prepared)
    if options.prepare_only:
        return
    from memorist_training.fit import Recipe, fit, read_prepared
    from memorist_training.measure import measure
    from memorist_training.model import AdaptedMiniLM

    pieces, base = read_prepared(options.prepared)
    kept, held_out = split(read_corpus())
    told = read_told()
    given = dict(one.split("=") for one in options.recipe)
    kinds = {it.name: type(it.default) for it in fields(Recipe)}
    recipe = replace(Recipe(), **{name: kinds[name](value) for name, value in given.items()})
    figures: dict[str, object] = {}
    for seed in options.seeds:
        model = fit(kept, told, pieces, base, replace(recipe, seed=seed))
        figures[f"seed {seed}"] = measure(model, held_out, pieces)
        print(json.dumps({seed: figures[f"seed {seed}"]}), file=sys.stderr)
        if seed == options.seeds[0]:
            factors = {name: it.astype(np.float16) for name, it in model.adapter_factors().items()}
            np.savez_compressed(options.out, **factors)
    untrained = AdaptedMiniLM(base, rank=1, strength=0.0)
    figures["base"] = measure(untrained, held_out, pieces)
    print(json.dumps(figures, indent=1))


def parser() -> argparse.ArgumentParser:
    """What can be said on the command line."""
    made = argparse.ArgumentParser(prog="memorist_training", description=__doc__)
    made.add_argument("--seeds", type=int, nargs="+", default=[1], help="the first one is kept")
    made.add_argument("--recipe", nargs="*", default=[], metavar="NAME=VALUE")
    made.add_argument("--prepared", type=Path, default=Path("prepared.npz"))
    made.add_argument("--prepare-only", action="store_true")
    made.add_argument("--out", type=Path, default=PACKAGE / "adapter.npz")
    return made


if __name__ == "__main__":
    main()
