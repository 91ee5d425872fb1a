"""WordPiece: the same numbers as the tokenizer that the model was trained with."""

from __future__ import annotations

import threading

import pytest

from memorist.language.text import minilm_folder
from memorist.providers.local_model import WordPiece, split

# Made with Hugging Face's tokenizers 0.23.3 and the tokenizer.json of all-MiniLM-L6-v2.
GOLDEN = [
    (
        "I moved to Berlin in March. No more Munich commutes!",
        [1045, 2333, 2000, 4068, 1999, 2233, 1012, 2053, 2062, 7469, 4012, 26746, 2015, 999],
    ),
    ("  Tabs\tand\nnew\r\nlines  ", [21628, 2015, 1998, 2047, 3210]),
    ("Crème brûlée à la Zoë", [13675, 21382, 7987, 9307, 2063, 1037, 2474, 11199]),
    (
        "unaffable antidisestablishmentarianism",
        [14477, 20961, 3468, 3424, 10521, 4355, 7875, 13602, 3672, 12199, 2964],
    ),
    (
        "Я переехала в Берлин",
        [
            1210,
            1194,
            15290,
            16856,
            15290,
            15290,
            29750,
            10260,
            29436,
            10260,
            1182,
            1181,
            15290,
            16856,
            29436,
            10325,
            18947,
        ],
    ),
    ("我在三月搬到了柏林", [1855, 100, 1741, 1872, 100, 100, 100, 100, 1881]),
    ("日本語のテキスト", [1864, 1876, 1950, 1671, 30239, 30227, 30233, 30240]),
    (
        "한국어 텍스트",
        [
            1469,
            30006,
            30021,
            29991,
            30014,
            30020,
            29999,
            30008,
            1467,
            30009,
            30020,
            29997,
            30017,
            30003,
            30017,
        ],
    ),
    (
        "مرحبا بالعالم",
        [1295, 17149, 29820, 29816, 25573, 1271, 25573, 23673, 29830, 25573, 23673, 22192],
    ),
    ("नमस्ते", [1327, 29867, 29874, 29859]),
    (
        "Ελληνικά Γράμματα",
        [
            1159,
            29727,
            29727,
            24824,
            16177,
            18199,
            29726,
            14608,
            1157,
            29732,
            14608,
            29728,
            29728,
            14608,
            29734,
            14608,
        ],
    ),
    ("🙂 🎉 ok", [100, 100, 7929]),
    (
        "don't e-mail me@x.org, it's 50%!",
        [
            2123,
            1005,
            1056,
            1041,
            1011,
            5653,
            2033,
            1030,
            1060,
            1012,
            8917,
            1010,
            2009,
            1005,
            1055,
            2753,
            1003,
            999,
        ],
    ),
    ("x" * 101, [100]),
    ("a\u200bb\xad c\x00d\ufffd", [11113, 3729]),
    ("“quotes” — dash… ¿qué?", [1523, 16614, 1524, 1517, 11454, 1529, 1094, 10861, 1029]),
    ("İstanbul ẞ ﬁne", [9960, 1096, 1984, 2638]),
    ("1,234.56 € £ ¥ ~ ^ `", [1015, 1010, 22018, 1012, 5179, 1574, 1069, 1071, 1066, 1034, 1036]),
    ("𝔘𝔫𝔦𝔠𝔬𝔡𝔢 ①②", [100, 100]),
    ("\u01c5 \u0345 a\u0301\u0327", [100, 1037]),
]


@pytest.fixture(scope="module")
def pieces() -> WordPiece:
    return WordPiece(minilm_folder())


@pytest.mark.parametrize(("text", "ids"), GOLDEN, ids=[ascii(text)[:20] for text, _ in GOLDEN])
def test_ids_are_those_of_the_reference_tokenizer(
    pieces: WordPiece, text: str, ids: list[int]
) -> None:
    assert pieces.encode(text) == ids


def test_marks_written_by_a_user_are_text_and_not_marks(pieces: WordPiece) -> None:
    assert not {pieces.start, pieces.stop} & set(pieces.encode("[CLS] [SEP]"))


@pytest.mark.parametrize("text", ["", " \t\n", "\x00\x07", "\u200b\ufeff"])
def test_a_text_without_anything_to_read_has_no_pieces(pieces: WordPiece, text: str) -> None:
    assert pieces.encode(text) == []


def test_a_lone_surrogate_is_unknown_and_no_error(pieces: WordPiece) -> None:
    assert pieces.encode("a \ud800 b") == [1037, pieces.unknown, 1038]


def test_words_signs_and_ideographs_stand_apart() -> None:
    assert split("It's 50%") == ["it", "'", "s", "50", "%"]
    assert split("ÉTÉ—été") == ["ete", "—", "ete"]
    assert split("ab月cd") == ["ab", "月", "cd"]


def test_threads_share_a_tokenizer(pieces: WordPiece) -> None:
    wrong: list[str] = []

    def work() -> None:
        for text, ids in GOLDEN:
            if pieces.encode(text) != ids:
                wrong.append(text)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
