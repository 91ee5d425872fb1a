"""SQLite and PostgreSQL, driven side by side through random lives."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from memorist.store.postgres.store import PostgresStore
from memorist.store.sqlite.store import SqliteStore
from tests.conformance.machine import StoreMachine
from tests.support.postgres import Server

LONG = bool(os.environ.get("MEMORIST_PROVE"))


def test_every_store_behaves_as_the_model_and_as_the_others(
    tmp_path: Path, vector_server: Server, plain_server: Server
) -> None:
    with (
        SqliteStore(tmp_path / "memory.db") as sqlite,
        PostgresStore(vector_server.create_database("machine")) as postgres,
        PostgresStore(plain_server.create_database("machine")) as plain,
    ):
        machine = type("Machine", (StoreMachine,), {"stores": [sqlite, postgres, plain]})
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=600 if LONG else 6,
                stateful_step_count=50 if LONG else 25,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
