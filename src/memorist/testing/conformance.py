"""Tests for stores, shipped so that any store can prove itself.

class TestMyStore(StoreConformance):
    @pytest.fixture
    def store(self): return MyStore(...)
"""

from memorist.testing.article_conformance import ArticleConformance
from memorist.testing.entry_conformance import (
    EntryConformance,
    EntryLifeConformance,
)
from memorist.testing.key_conformance import KeyConformance
from memorist.testing.life_conformance import (
    HoldConformance,
    LifeConformance,
    SourceConformance,
    SpendConformance,
)
from memorist.testing.log_conformance import LogConformance
from memorist.testing.queue_conformance import ForgetConformance, QueueConformance
from memorist.testing.recall_conformance import RecallConformance
from memorist.testing.session_conformance import SessionConformance
from memorist.testing.summary_conformance import SummaryConformance
from memorist.testing.view_conformance import ViewConformance


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
    """Everything `memorist.store.base.Store` promises. Give it a fixture `store`."""
