"""Tests that every store must pass.

class TestMyStore(StoreConformance):
    @pytest.fixture
    def store(self): return MyStore(...)
"""

from tests.conformance.activity_conformance import ActivityConformance
from tests.conformance.article_conformance import ArticleConformance
from tests.conformance.doors_conformance import DoorsConformance
from tests.conformance.entry_conformance import EntryConformance, EntryLifeConformance
from tests.conformance.key_conformance import KeyConformance
from tests.conformance.life_conformance import LifeConformance, SourceConformance, SpendConformance
from tests.conformance.list_conformance import ListConformance
from tests.conformance.lock_conformance import LockConformance
from tests.conformance.log_conformance import LogConformance
from tests.conformance.page_conformance import PageConformance
from tests.conformance.queue_conformance import ForgetConformance, QueueConformance
from tests.conformance.recall_conformance import RecallConformance
from tests.conformance.session_conformance import SessionConformance
from tests.conformance.summary_conformance import SummaryConformance
from tests.conformance.update_conformance import UpdateConformance
from tests.conformance.view_conformance import ViewConformance


class SearchConformance(
    RecallConformance, UpdateConformance, ViewConformance, ArticleConformance, EntryConformance
):
    """What of that is found by words and by vectors."""


class StoreConformance(
    LogConformance,
    SessionConformance,
    SearchConformance,
    QueueConformance,
    ForgetConformance,
    LifeConformance,
    DoorsConformance,
    SpendConformance,
    SourceConformance,
    EntryLifeConformance,
    SummaryConformance,
    KeyConformance,
    PageConformance,
    ListConformance,
    LockConformance,
    ActivityConformance,
):
    """Everything that `memorist.store.base.Store` promises. Give it a fixture `store`."""
