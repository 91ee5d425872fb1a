"""The rows that benchmarks load by COPY are those that `remember` and a worker leave."""

from __future__ import annotations

from typing import Any

import numpy as np
import psycopg
from benchmarks.scale_corpus import Corpus, TopicEmbedder
from benchmarks.scale_probe import TENANT
from benchmarks.scale_rows import SESSION, Loader, Talk, message_of, scope_of

from memorist import Memory
from memorist.store.postgres.store import PostgresStore
from tests.support.postgres import Server

EACH = {500: 2, 2_000: 1}  # messages of a user, and how many users have so many
# Without numbers that follow the order in which users write, and moments of writing.
TABLES = {
    "owners": "owner, tenant_hash, tenant, user_id, changes",
    "sessions": "owner, key, session_hash, session_id, agent_name, title",
    "session_uuids": "key, owner",
    "chat_message_history": "owner, message_id, session_id, message, created_at, role, source",
    "passages": "owner, created_at, kind, agent_name, session_id, view_id, start_at, stop_at, role,"
    " speaker, self_reference, is_question, outdated, importance, overtaken_by",
    "embedders": "owner, embedder, dimensions",
    "placed_messages": "owner, count",
    "speakers": "*",
    "memory_items": "*",
}
OF_PASSAGES = {
    "passage_words": "id, words, placed",
    "vectors": "passage, embedder, embedding::text",
}

CODED = """
    SELECT code_vectors(owner, embedder, NULL) FROM (
      SELECT owner, embedder FROM vectors WHERE NOT EXISTS (SELECT FROM vector_codes)
      GROUP BY 1, 2 HAVING count(*) >= 2000) AS many
"""


def rows(url: str) -> dict[str, Any]:
    """What the tables hold, with messages in place of their numbers."""
    with psycopg.connect(url) as db:
        held: dict[str, Any] = {
            table: sorted(db.execute(f"SELECT {columns} FROM {table}"), key=str)
            for table, columns in TABLES.items()
        }
        named = db.execute("SELECT id << 20, owner || message_id FROM chat_message_history")
        ids: dict[int, str] = dict(named.fetchall())
        for table, columns in OF_PASSAGES.items():
            found = db.execute(f"SELECT {columns} FROM {table}").fetchall()
            held[table] = {ids[passage]: rest for passage, *rest in found}
        held["postings"] = postings = dict[Any, list[str]]()
        for word, places in db.execute("SELECT word, places FROM postings ORDER BY word, part"):
            passages = np.frombuffer(places, ">i8").tolist()
            postings.setdefault(word, []).extend(ids[it] for it in passages)
        codes = b"".join(row[0] for row in db.execute("SELECT entries FROM vector_codes"))
        cells = np.frombuffer(codes, [("passage", ">i8"), ("signs", "V48")])
        held["codes"] = {ids[int(it["passage"])]: it["signs"].tobytes() for it in cells}
    return held


def test_a_loaded_user_has_the_rows_of_one_who_spoke(vector_server: Server) -> None:
    corpus = Corpus()
    spoken, loaded = (vector_server.create_database(name) for name in ("spoken", "loaded"))
    store, embedder = PostgresStore(spoken), TopicEmbedder(corpus)
    with Memory(store, tenant=TENANT, embedder=embedder, extraction=None) as memory:
        for each, users in EACH.items():
            for user in range(users):
                said = [message_of(corpus, each, user, nth) for nth in range(each)]
                for at in range(0, each, SESSION):
                    name, session = scope_of(each, user).user, f"s{at // SESSION}"
                    memory.remember(said[at : at + SESSION], user=name, session=session)
        memory.jobs.catch_up()
        with psycopg.connect(spoken) as db:
            for each, users in EACH.items():
                for user in range(users):
                    owner = scope_of(each, user).owner
                    for _ in range(2 * each // 256):
                        db.execute("SELECT place_words(%s, 1)", (owner,))
            db.execute(CODED)
    with PostgresStore(loaded), Loader(loaded, Talk(corpus)) as loader:
        for each, users in EACH.items():
            loader.add(each, range(users))
    found, wanted = rows(loaded), rows(spoken)
    assert found.keys() == wanted.keys()
    for table in found:
        assert found[table] == wanted[table], table
    assert all(found[table] for table in (*OF_PASSAGES, "postings", "codes", "passages"))
