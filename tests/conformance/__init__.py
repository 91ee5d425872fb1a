"""What every store must do: one suite, run on each database."""

import pytest

PARTS = ("log", "session", "view", "queue", "life", "recall", "article", "entry", "key", "summary")
pytest.register_assert_rewrite(*(f"{__name__}.{part}_conformance" for part in PARTS))
