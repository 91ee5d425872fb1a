"""Document 002, the memory flow of the ReactAgent: its names and its examples."""

from __future__ import annotations

import pytest

from memorist import Policy
from tests.documents.names import uses


@uses("MemoryController.calculateImportance", "ErrorPatterns", "CodeContext", "Solutions")
@uses("UserPreferences", "TaskHistory", "Knowledge")
def test_each_category_adds_to_the_importance() -> None:
    policy = Policy()
    assert policy.base_importance == pytest.approx(0.5)
    assert dict(policy.boosts) == {
        "error_patterns": 0.3,
        "code_context": 0.2,
        "solutions": 0.3,
        "user_preferences": 0.1,
        "task_history": 0.1,
    }
