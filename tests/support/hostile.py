"""Ids that look like wildcards, paths, SQL or each other: no two of them may ever be mixed up."""

from __future__ import annotations

HOSTILE_IDS = [
    *("*", "%", "_", "?", "[a-z]*", '" OR 1=1', "'; DROP TABLE messages; --"),
    *("alice", "alice ", " alice", "alice\n", "Alice", "ALICE", "%61lice", "alice\u200b"),
    *("al\u202eice", "ａｌｉｃｅ", "ал\u0438са", "ali\u0301ce", "al\u00edce"),
    *("a", "a/b", "a/../b", "a:b", "..", "."),
    *("default", "me", "null", "None", "0"),
    *("x" * 4_096, "x" * 4_095, "🧠" * 64),
]
