"""Cues: words by which people tell an error, a decision or a task, in some languages.

They sort statements into the parts of a summary and add to their weight; a text in a language
that is not here is still weighed by its figures, its names and the rarity of its words.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from memorist.records.text import UNSPACED, fold


class Cue(IntEnum):
    """What a word hints at."""

    ERROR = 0
    FIX = 1
    DECISION = 2
    TASK = 3
    DONE = 4
    WISH = 5
    REQUEST = 6


# A star stands for any ending, an underscore for a space.
_WORDS: dict[Cue, str] = {
    Cue.ERROR: """
        error errors fail fails failed failing failure exception* traceback crash* bug bugs broken
        refused timeout* timed_out segfault* panic* denied doesn't_work didn't_work not_working
        cannot not_found invalid
        fehler* fehlgeschlagen kaputt abgestürzt funktioniert_nicht geht_nicht
        ошибк* сбой сломал* упал упала не_работает исключени*
        erreur* échec* échou* panne ne_marche_pas fallo falló no_funciona erro falhou
        错误 失败 报错 异常 崩溃 エラー 失敗 例外 오류 실패
    """,
    Cue.FIX: """
        fixed fix fixes solved resolved root_cause the_cause workaround* turned_out
        behoben gelöst ursache lösung исправ* решено решена причин*
        corrigé résolu solución solucionado arreglado corrigido
        修复 解决 原因 修正 解決
    """,
    Cue.DECISION: """
        decide decided deciding decision* chose chosen agreed going_with settled_on instead_of
        rather_than let's_use we'll_use we_will_use we_use prefer* opted concluded
        entschied* entscheid* beschlossen beschluss wir_nehmen bevorzug* stattdessen
        решил* решение решения выбра* договорил* будем вместо предпочита*
        décid* choisi* préfér* plutôt decidi* elegi* preferi* escolh*
        决定 选择 采用 选用 而不是 决策 偏好 決め 決定 採用 결정 선택
    """,
    Cue.TASK: """
        todo fixme tbd still_need still_have_to still_to still_open still_missing remains_to
        remaining open_question open_task open_issue pending next_step don't_forget remind_me
        need_to needs_to have_to has_to must follow_up outstanding
        muss_noch noch_offen noch_zu als_nächstes vergiss_nicht erinnere_mich müssen
        нужно надо осталось не_забуд* напомни* следующий_шаг должен должна должны
        il_faut reste_à n'oublie* prochaine_étape falta hay_que pendiente* tengo_que
        需要 还要 待办 别忘 下一步 必须 まだ 必要が 次は 해야
    """,
    Cue.DONE: """
        done finished completed shipped merged closed is_ready works_now passes_now
        erledigt fertig abgeschlossen готово сделан* закончил* завершен* выполнен*
        terminé fini hecho terminado listo pronto
        完成 做好 終わ 済み 完了 완료
    """,
    Cue.WISH: """
        always never please_don't i_like i_love i_hate i_want my_favorite my_favourite actually
        i_meant correction no_longer not_anymore
        immer nie niemals ich_mag ich_möchte ich_will ich_liebe eigentlich nicht_mehr
        всегда никогда я_люблю я_хочу на_самом_деле больше_не
        toujours jamais j'aime en_fait siempre nunca me_gusta en_realidad
        总是 从不 我喜欢 我想 其实 不再 いつも 好き 実は 항상
    """,
    Cue.REQUEST: """
        please can_you could_you help_me i_need_you i'd_like_you we_want_to the_goal
        bitte kannst_du können_sie hilf_mir das_ziel пожалуйста можешь помоги сделай цель
        s'il_te_plaît s'il_vous_plaît peux-tu pouvez-vous por_favor puedes ayúdame
        请 帮我 目标 お願い してください 해주세요
    """,
}
ROOT = 4
_PREFIXES = range(ROOT, 10)  # how long what stands before a star may be


def _sorted_out() -> tuple[dict[str, Cue], dict[str, Cue], dict[str, Cue], dict[str, Cue]]:
    """The cues as whole words, beginnings of words, phrases, and runs of unspaced characters."""
    whole: dict[str, Cue] = {}
    begun: dict[str, Cue] = {}
    phrases: dict[str, Cue] = {}
    unspaced: dict[str, Cue] = {}
    for cue, words in _WORDS.items():
        for word in words.split():
            plain = " ".join(fold(word.replace("_", " ").rstrip("*")).split())
            if UNSPACED.match(word):
                unspaced[word] = cue
            elif " " in plain:
                phrases[plain] = cue
            else:
                (begun if word.endswith("*") else whole)[plain] = cue
    return whole, begun, phrases, unspaced


_WHOLE, _BEGUN, _PHRASES, _UNSPACED = _sorted_out()
_ROOTS = frozenset(begun[:ROOT] for begun in _BEGUN)
_BY_WORD: dict[str, list[tuple[str, Cue]]] = {}
for _phrase, _cue in _PHRASES.items():  # by their longest word, which is the rarest
    _BY_WORD.setdefault(max(_phrase.split(), key=len), []).append((f" {_phrase} ", _cue))


CUE_WORDS = frozenset(
    word for cues in (_WHOLE, _BEGUN, _PHRASES) for cue in cues for word in cue.split()
)


def cues_of(text: str, words: Sequence[str]) -> frozenset[Cue]:
    """What the words of a text hint at; `words` are the text folded."""
    found = {_WHOLE[word] for word in _WHOLE.keys() & words}
    if not _ROOTS.isdisjoint([word[:ROOT] for word in words]):
        begun = {word[:length] for word in words for length in _PREFIXES}
        found.update(_BEGUN[root] for root in _BEGUN.keys() & begun)
    if not _BY_WORD.keys().isdisjoint(words):
        line = f" {' '.join(words)} "
        near = [pair for word in _BY_WORD.keys() & words for pair in _BY_WORD[word]]
        found.update(cue for phrase, cue in near if phrase in line)
    if not text.isascii():
        found.update(cue for run, cue in _UNSPACED.items() if run in text)
    return frozenset(found)
