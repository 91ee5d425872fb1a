"""Tests for stores, shipped so that any store can prove itself.

class TestMyStore(StoreConformance):
    @pytest.fixture
    def store(self): return MyStore(...)
"""

from recollect.testing.article_conformance import ArticleConformance
from recollect.testing.entry_conformance import (
    EntryConformance,
    EntryLifeConformance,
)
from recollect.testing.key_conformance import KeyConformance
from recollect.testing.life_conformance import (
    HoldConformance,
    LifeConformance,
    SourceConformance,
    SpendConformance,
)
from recollect.testing.log_conformance import LogConformance
from recollect.testing.queue_conformance import ForgetConformance, QueueConformance
from recollect.testing.recall_conformance import RecallConformance
from recollect.testing.session_conformance import SessionConformance
from recollect.testing.summary_conformance import SummaryConformance
from recollect.testing.view_conformance import ViewConformance


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
