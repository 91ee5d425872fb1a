"""Odd values, ids, paths and headers: what a fuzzer puts where something sound belongs."""

from __future__ import annotations

from typing import Any

WORD = "zqxjword"  # in what is sent; never in an error, never in a log
HOSTILE_IDS = [
    "*", "%", "_", "?", "alice", "alice ", " alice", "alice\n", "Alice", "ALICE", "a/b", "a/../b",
    "..", ".", "default", "null", "None", "0", "'; DROP TABLE messages; --", "ａｌｉｃｅ",
    "e\u0301", "\u00e9", "x" * 4_096, "x" * 4_095, "🧠" * 64, "al\u202eice",
    "alice\u200b", "%61lice",
]  # fmt: skip
DATES = [
    "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59",
    "10000-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-03-01", "2026-03-01T00:00:00",
    "2026-03-01T00:00:00+99:99", "2026-03-01T25:61:61Z", "-0001-01-01T00:00:00Z", "now", "1e30",
    "2026-03-01T00:00:00.123456789Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z",
    0, -1, 1e18, -1e18, 253402300800, -62135596801, 2**63, 1e-9,
]  # fmt: skip
QUERIES = [
    '"', '"a', "a*", "^a", "a OR", "AND", "NEAR(a b, 2)", "col:x", "(((", "-a", "a + b", "{a b}:c",
    "' OR 1=1 --", "'; DELETE FROM memories; --", "%_%", "\\", "a\\", "$1 %s {0} :name ?", "* *",
    "<script>alert(1)</script>", "{{7*7}}", "${jndi:ldap://127.0.0.1/}", "../../etc/passwd",
    "a\tb\nc\rd", "\u2028", "😀" * 50, "a " * 5_000, "\u0301" * 500, "か" * 500, "ß" * 300,
]  # fmt: skip
TEXTS = [
    "", " ", "\n", "\x00", "a\x00b", "\ud800", "a\udfffb", "\ud83d", "\u202egnp.exe", "\ufeff",
    "👩‍👩‍👧‍👦", "\uffff", "\U0010ffff", "\x7f\x1b[31m", "x" * 70_000,
    "\r\nX-Evil: 1", "%00", "null", "1", "true", "NaN", "data:image/png;base64,AAAA",
    "file:///etc/passwd", "http://127.0.0.1:9/",
]  # fmt: skip
NUMBERS = [
    0, -1, 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**400, -(10**400), 0.1,
    -0.0, 1e308, float("nan"), float("inf"), float("-inf"), "@raw:1e309@", "@raw:-1e999@",
    "@raw:1E-999@", "@raw:00@", "@raw:0x10@",
]  # fmt: skip
SHAPES: list[Any] = [
    None, True, False, [], {}, [[]], [None], {"": ""}, {WORD: WORD}, [WORD], {"__proto__": {}},
    {"$ref": "#"}, ["a"] * 1_100, {"a": {"b": {"c": []}}}, "@raw:[[[[[[[[[[1]]]]]]]]]]@",
    f"@raw:{'[' * 63}{']' * 63}@", f"@raw:{'[' * 70}{']' * 70}@", '@raw:{"a":1,"a":2}@',
    [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}],
    [{"type": "image_url", "image_url": "http://127.0.0.1:9/"}],
    [{"type": "text", "text": "\ud800"}], [{"type": "text", "text": WORD}, 1, None],
]  # fmt: skip
RAW = [
    b"", b"{", b"}", b"null", b"[]", b'"x"', b"1", b"NaN", b"1e999", b"\xff\xfe", b"\x00", b"{}{}",
    b"9" * 5_000, b"[" * 100_000, b'{"a":' * 70 + b"1" + b"}" * 70, b"\xef\xbb\xbf{}", b"\xc3\x28",
    b'{"\\ud800":1}', b'{"role":"user","content":"\xed\xa0\x80"}', b'{"role":"user",}', b"{'a':1}",
    b'{"question":"a","question":"b"}', b'{"text":"\\u0000"}',
    b'{"role":"user","content":\xf0\x9f}', b"a=b&c=d",
    b'{"user":null,"user":"x"}', '{"role":"user"}'.encode("utf-16"), b'{"x":"\\u12"}',
]  # fmt: skip
PATHS = [
    "/%00", "/api/%2e%2e/health", "/api/../api/keys", "//api/messages", "/api//messages", "/api/",
    "/api/messages/", "/api/messages/%2F", "/api/messages/%2e%2e%2fkeys", "/api/messages/a%00b",
    "/api/messages/%ff", "/api/messages/%C3%28", "/api/messages/" + "a" * 9_000,
    "/api/jobs/x/retry",
    "/web/..%2f..%2fauth.py", "/web/%2e%2e/auth.py", "/web/....//", "/web/%00", "/web", "/web/",
    "/api/messages/%ED%A0%80", "/api/facts/%25%30%30", "*", "http://127.0.0.1/api/messages",
    "/api/messages?limit=%00", "/api/messages?limit=1&limit=x", "/api/messages?%ff=%ff", "/mcp",
    "/api/sessions?cursor=" + "A" * 5_000, "/openapi.json?x", "/metrics", "/ready", "/mcp/x", "/?",
    "/api/messages?cursor=%F0%9F%A7%A0", "/api/messages#x", "/API/MESSAGES", "/api/messages;a=b",
]  # fmt: skip
CURSORS = ["", "=", "AAAA", "//", "MTIz", "LTE", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5", "_-", "é", "%00"]
CURSORS += ["A" * 4_097, "gICA", "w7_Dvw", "2aHZoQ"]  # broken UTF-8; digits of another script
HEADERS: dict[str, list[bytes]] = {
    "Content-Type": [
        b"text/plain", b"", b"application/json; charset=utf-16", b"multipart/form-data; boundary=x",
        b"application/x-www-form-urlencoded", b"APPLICATION/JSON", b"application/json, text/plain",
        b"application/vnd.api+json", b"\xff", b"application/json" + b";a" * 999,
    ],
    "Accept": [b"", b"application/json", b"text/event-stream", b";;q=", b"a" * 3_000, b"\xe9"],
    "Idempotency-Key": [b"", b" ", b"k1", b"k2", b"\xe9", b"a" * 256, b"\t", b"k" * 9_000],
    "Authorization": [
        b"", b"Bearer", b"Bearer ", b"Basic YTpi", b"Bearer mk_0_0", b"Bearer \xff", b"bearer x y",
        b"Bearer mk_0123456789abcdef_" + b"A" * 43, b"Bearer eyJhbGciOiJub25lIn0.e30.",
        b"B" * 9_000,
    ],
    "Host": [b"evil.example", b"", b"127.0.0.1:99999", b"[::1", b"127.0.0.1\xff", b"a" * 3_000],
    "Origin": [b"null", b"http://evil.example", b"file://", b"http://localhost", b"\xff", b"://"],
    "X-Request-Id": [b"a" * 65, b"ok-1", b"\xff", b"a b", b"", WORD.encode()],
    "If-Match": [b'"1"', b'"x"', b"*", b'W/"0"', b'"999999999999"', b"\xe9"],
    "Last-Event-ID": [b"7", b"-1", b"x", b"9" * 20, b"\xb2", b""],
    "Content-Encoding": [b"gzip", b"identity", b"br, gzip", b""],
    "Expect": [b"100-continue", b"x"], "Range": [b"bytes=0-1", b"bytes=-1"],
    "Upgrade": [b"h2c", b"websocket"],
    "X-Forwarded-For": [b"127.0.0.1"], "X-HTTP-Method-Override": [b"DELETE"],
    "Cookie": [b"a=" + b"b" * 9_000],
    "Sec-Fetch-Site": [b"cross-site", b"x"], "Access-Control-Request-Method": [b"POST"],
}  # fmt: skip
METHODS = [
    "GET",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "HEAD",
    "OPTIONS",
    "TRACE",
    "BREW",
    "get",
    "PRI",
]
