"""Tests for stores, shipped so that any store can prove itself.

class TestMyStore(StoreConformance):
    @pytest.fixture
    def store(self): return MyStore(...)
"""

import pytest

pytest.register_assert_rewrite(
    *(
        f"recollect.testing.{part}_conformance"
        for part in ("log", "session", "view", "queue", "life", "recall", "article", "entry", "key")
    )
)

from recollect.testing.article_conformance import ArticleConformance  # noqa: E402
from recollect.testing.entry_conformance import (  # noqa: E402
    EntryConformance,
    EntryLifeConformance,
)
from recollect.testing.key_conformance import KeyConformance  # noqa: E402
from recollect.testing.life_conformance import (  # noqa: E402
    HoldConformance,
    LifeConformance,
    SourceConformance,
    SpendConformance,
)
from recollect.testing.log_conformance import LogConformance  # noqa: E402
from recollect.testing.queue_conformance import ForgetConformance, QueueConformance  # noqa: E402
from recollect.testing.recall_conformance import RecallConformance  # noqa: E402
from recollect.testing.session_conformance import SessionConformance  # noqa: E402
from recollect.testing.summary_conformance import SummaryConformance  # noqa: E402
from recollect.testing.view_conformance import ViewConformance  # noqa: E402

__all__ = ["StoreConformance"]


class StoreConformance(
    LogConformance,
    SessionConformance,
    ViewConformance,
    QueueConformance,
    ForgetConformance,
    LifeConformance,
    HoldConformance,
    SpendConformance,
    SourceConformance,
    RecallConformance,
    ArticleConformance,
    EntryConformance,
    EntryLifeConformance,
    SummaryConformance,
    KeyConformance,
):
    """Everything `recollect.store.base.Store` promises. Give it a fixture `store`."""
