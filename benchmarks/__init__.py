"""Benchmarks: ratios to the bare machine, measured in one run. They use public names only."""
