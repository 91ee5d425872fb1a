"""How far one vocabulary's counts are from another's, and so what an estimate is worth.

The texts are this repository's own, and a few more in scripts that it does not hold.
"""

from __future__ import annotations

import base64
import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean

from rich.console import Console
from rich.table import Table

from memorist import Message
from memorist.context.tokens import TokenCounter
from memorist.providers.tokenizer import ByteEstimate, Encoding, Estimate, Tokenizer, tokenizer_for

ROOT = Path(__file__).parent.parent
CHARS = 1_200  # about a long message
Texts = Mapping[str, Sequence[str]]

JAPANESE = """三月にミュンヘンからベルリンへ引っ越しました。もう長い通勤はありません。
来週の金曜日までに報告書を仕上げなければならないので、今週末は友人と会えないと思います。
妹は京都の大学で建築を勉強していて、毎朝自転車で鴨川沿いを走っているそうです。
このプログラムはデータベースから利用者の発言を読み込み、要約を作成して保存します。
アレルギーがあるので、ピーナッツの入った料理は絶対に注文しないでください。
昨日の会議では、新しい設計について三時間も議論しましたが、結論は出ませんでした。
彼女はコーヒーより紅茶が好きで、砂糖は入れずに牛乳だけを少し加えます。"""
KOREAN = """저는 삼월에 뮌헨에서 베를린으로 이사했어요. 이제 긴 출퇴근은 없습니다.
다음 주 금요일까지 보고서를 끝내야 해서 이번 주말에는 친구를 만나기 어려울 것 같아요.
여동생은 대학교에서 건축을 공부하고 있고 매일 아침 자전거를 타고 강변을 달립니다.
땅콩 알레르기가 있으니 땅콩이 들어간 음식은 절대로 주문하지 말아 주세요.
어제 회의에서 새로운 설계에 대해 세 시간 동안 토론했지만 결론을 내리지 못했습니다."""
HINDI = """मैं मार्च में म्यूनिख से बर्लिन आ गया। अब रोज़ लंबी यात्रा नहीं करनी पड़ती।
अगले शुक्रवार तक रिपोर्ट पूरी करनी है, इसलिए इस सप्ताहांत दोस्तों से नहीं मिल पाऊँगा।
मेरी बहन विश्वविद्यालय में वास्तुकला पढ़ती है और हर सुबह साइकिल से नदी के किनारे जाती है।
मुझे मूँगफली से एलर्जी है, कृपया ऐसा कोई व्यंजन न मँगवाएँ जिसमें मूँगफली हो।
कल की बैठक में हमने नए डिज़ाइन पर तीन घंटे चर्चा की, लेकिन कोई निष्कर्ष नहीं निकला।
उसे कॉफ़ी से ज़्यादा चाय पसंद है, बिना चीनी के और थोड़े दूध के साथ।"""
ARABIC = """انتقلت من ميونخ إلى برلين في شهر مارس، ولم أعد أقضي ساعات في الطريق إلى العمل.
يجب أن أنهي التقرير قبل يوم الجمعة القادم، لذلك لن أتمكن من لقاء أصدقائي في عطلة نهاية الأسبوع.
تدرس أختي الهندسة المعمارية في الجامعة وتركب دراجتها كل صباح على ضفة النهر.
لدي حساسية من الفول السوداني، فمن فضلك لا تطلب أي طبق يحتوي عليه.
ناقشنا التصميم الجديد ثلاث ساعات في اجتماع الأمس ولم نصل إلى نتيجة.
إنها تفضل الشاي على القهوة، من دون سكر ومع قليل من الحليب."""
THAI = """ฉันย้ายจากมิวนิกมาเบอร์ลินเมื่อเดือนมีนาคม ไม่ต้องเดินทางไกลไปทำงานอีกแล้ว
ต้องส่งรายงานให้เสร็จก่อนวันศุกร์หน้า สุดสัปดาห์นี้จึงคงไม่ได้เจอเพื่อน
น้องสาวเรียนสถาปัตยกรรมที่มหาวิทยาลัยและปั่นจักรยานเลียบแม่น้ำทุกเช้า
ฉันแพ้ถั่วลิสง กรุณาอย่าสั่งอาหารที่มีถั่วลิสงเด็ดขาด"""
EMOJI = """Moved to Berlin 🎉🎉🎉 no more commuting 🚆😴 so happy 😍❤️
👩‍👩‍👧‍👦 family dinner tonight 🍝🍷 who's in? 🙋‍♀️🙋🏽‍♂️
🔥🔥🔥 shipped v2 🚀 tests ✅ docs ✅ lint ❌ 😅
🤧🥜🚫 allergic!!! don't forget 🙏🏻 💊
😂😂😂😂😂 I can't 💀 lmao 🫠
🇩🇪🇫🇷🇯🇵 ✈️ 2026 ⬅️ next trips 🗺️📅"""


def corpus() -> dict[str, list[str]]:
    """Texts of the size of messages, by kind."""
    said = [
        json.loads(line)
        for line in (ROOT / "benchmarks/labelled/dev.jsonl").read_text().splitlines()
    ]
    kinds = {
        f"chat, {language}": [one["text"] for one in said if one["lang"] == language]
        for language in ("en", "de", "es", "ru", "zh")
    }
    written = {"ja": JAPANESE, "ko": KOREAN, "hi": HINDI, "ar": ARABIC, "th": THAI}
    kinds |= {f"chat, {name}": text.splitlines() for name, text in written.items()}
    noise = random.Random(7).randbytes(40_000)
    return kinds | {
        "emoji": EMOJI.splitlines(),
        "prose, en": _cut("\n".join(p.read_text() for p in sorted(ROOT.glob("docs/*.md")))),
        "code": _cut("\n".join(p.read_text() for p in sorted(ROOT.glob("src/memorist/*.py")))),
        "JSON": [json.dumps(one, indent=2) for one in said if one["lang"] == "en"],
        "base64": _cut(base64.b64encode(noise).decode()),
        "hex": _cut(noise[:12_000].hex()),
        "numbers": _cut(", ".join(str(byte * 7_919 % 100_003) for byte in noise[:4_000])),
    }


def _cut(text: str) -> list[str]:
    return [text[at : at + CHARS] for at in range(0, len(text) - CHARS, CHARS)]


def ratios(texts: Sequence[str], counted: Tokenizer, against: Tokenizer) -> list[float]:
    """For each text the one count as a multiple of the other."""
    pairs = zip(counted.count(texts), against.count(texts), strict=True)
    return [ours / theirs for ours, theirs in pairs]


def apart(texts: Texts) -> Table:
    """Each public vocabulary beside o200k_base."""
    table = Table(title="tokens, as a multiple of o200k_base (mean, most)")
    for heading in ("texts of", "texts", "characters a token", "cl100k_base", "qwen3.5"):
        table.add_column(heading, justify="left" if heading == "texts of" else "right")
    base = Encoding("o200k_base")
    for kind, some in texts.items():
        density = sum(map(len, some)) / sum(base.count(some))
        row = [kind, str(len(some)), f"{density:.2f}"]
        for name in ("cl100k_base", "qwen3.5"):
            found = ratios(some, Encoding(name), base)
            row.append(f"{mean(found):.2f}  {max(found):.2f}")
        table.add_row(*row)
    return table


def errors(texts: Texts) -> Table:
    """What each estimate makes of vocabularies that are not its own."""
    table = Table(title="estimates: texts under-counted; mean over-count; worst kind of text")
    names = ("cl100k_base", "o200k_base", "qwen3.5")
    for heading in ("estimate", *names):
        table.add_column(heading, justify="left" if heading == "estimate" else "right")
    ours: list[Tokenizer] = [Estimate(Encoding("cl100k_base"), one) for one in (100, 110, 135, 180)]
    for estimate in (Estimate(Encoding("o200k_base"), 125), *ours, ByteEstimate()):
        table.add_row(estimate.name, *(_error(texts, estimate, Encoding(name)) for name in names))
    return table


def _error(texts: Texts, estimate: Tokenizer, truth: Tokenizer) -> str:
    """Every kind of text weighs the same, however many of it there are."""
    kinds = [ratios(some, estimate, truth) for some in texts.values()]
    under = mean([sum(ratio < 1 for ratio in found) / len(found) for found in kinds])
    over = [mean(found) - 1 for found in kinds]
    return f"{under:6.1%} {mean(over):+6.0%} {min(over):+6.0%}"


def pace(texts: Texts) -> Table:
    """How long counting takes: a vocabulary's first use, fresh messages, messages seen before."""
    counter = TokenCounter(tokenizer_for())
    some = [text for kind in texts.values() for text in kind]
    messages = [Message("user", some[at % len(some)]) for at in range(100_000)]
    size = sum(len(one.text.encode()) for one in messages) / 1e6
    counter.text("loaded")
    table = Table(title=f"{len(messages):,} messages, {size:.0f} MB")
    for heading in ("", "seconds", "µs a message"):
        table.add_column(heading, justify="right" if heading else "left")
    steps: dict[str, Callable[[], object]] = {
        "counted": lambda: counter.messages(messages),
        "looked up, together": lambda: counter.messages(messages),
        "looked up, one by one": lambda: [counter.messages([one])[0] for one in messages],
    }
    for label, step in steps.items():
        begun = time.perf_counter()
        step()
        took = time.perf_counter() - begun
        table.add_row(label, f"{took:.2f}", f"{took / len(messages) * 1e6:.2f}")
    return table


def main() -> None:
    console = Console()
    texts = corpus()
    for table in (apart, errors, pace):
        console.print(table(texts))


if __name__ == "__main__":
    main()
