"""Memories are found by their words, the best first, and only by whose they are."""

from collections.abc import Sequence
from datetime import timedelta

from backburner.core.memory import Memory, query_words
from backburner.ports import MemoryWrite, NewMemory
from support.stage.make import STRANGER, USER
from support.stage.scene import Scene

MINUTE = timedelta(minutes=1)
#: What means something to a search engine, or to a database.
ODD = (
    '"',
    "'",
    "*",
    "a*b",
    "AND",
    "NOT (",
    "a:b",
    "^x",
    "%",
    "_",
    "\\",
    "🎉🎉",
    "東",
    "-",
    "",
    " ; --",
)


def a_memory_is_found_by_any_of_its_words(scene: Scene) -> None:
    _keep(scene, "ci/main", "Pipeline #4521 passed on Monday.")
    _keep(scene, "coffee", "Takes it black.")
    _keep(scene, "city", "Lives in 東京都. Ждёт письма 🎉")

    assert _found(scene, "pipeline") == ["ci/main"]
    assert _found(scene, "MAIN nothing") == ["ci/main"]
    assert _found(scene, "4521") == ["ci/main"]
    assert _found(scene, "京都") == _found(scene, "письма") == _found(scene, "🎉") == ["city"]
    assert _found(scene, "milk") == []


def only_the_last_word_may_be_a_beginning(scene: Scene) -> None:
    _keep(scene, "a", "coffee")
    _keep(scene, "b", "tea")

    assert _found(scene, "cof") == ["a"]
    assert _found(scene, "cof tea") == ["b"]


def words_that_few_memories_have_count_for_more(scene: Scene) -> None:
    for key in "abc":
        _keep(scene, key, "the build of the day")
    _keep(scene, "d", "the build of kiwi")
    _keep(scene, "e", "kiwi alone")

    assert _found(scene, "build kiwi") == ["d", "e", "c", "b", "a"]
    assert _found(scene, "build kiwi", limit=2) == ["d", "e"]


def what_is_written_over_or_deleted_is_not_found_any_more(scene: Scene) -> None:
    assert _keep(scene, "a", "coffee") is MemoryWrite.NEW
    assert _keep(scene, "a", "tea") is MemoryWrite.REPLACED
    assert (_found(scene, "coffee"), _found(scene, "tea")) == ([], ["a"])

    assert scene.run(lambda tx: tx.memories.remove(USER, "a"))
    assert _found(scene, "tea") == []


def odd_words_find_nothing_and_do_no_harm(scene: Scene) -> None:
    _keep(scene, "plain", "word")
    for odd in ODD:
        assert "plain" not in _found(scene, odd), odd
        assert _keep(scene, f"odd {odd}", odd) is MemoryWrite.NEW
    assert _found(scene, "AND") == ["odd AND"]


def nobody_finds_the_memories_of_another(scene: Scene) -> None:
    _keep(scene, "a", "coffee")
    scene.user(STRANGER)

    assert scene.run(lambda tx: tx.memories.search(STRANGER, ["coffee"], limit=9)) == []
    assert scene.run(lambda tx: tx.memories.recall(STRANGER, ["coffee"], limit=9)) == []


def what_fits_is_recalled_first_and_then_the_newest_without_words_of_others(scene: Scene) -> None:
    _keep(scene, "kiwi", "green")
    for key in "abc":
        _keep(scene, key, "something")
    _keep(scene, "d", "something", outside=True)
    _keep(scene, "e", "kiwi", outside=True)

    assert _recalled(scene, "kiwi", limit=4) == ["e", "kiwi", "c", "b", "a"]
    assert _recalled(scene, "", limit=2) == ["c", "b"]


def a_memory_that_is_to_be_spared_stays_as_it_is(scene: Scene) -> None:
    _keep(scene, "own", "coffee")
    _keep(scene, "others", "tea", outside=True)

    assert _keep(scene, "own", "poison", outside=True, keep_trusted=True) is MemoryWrite.REFUSED
    assert _keep(scene, "others", "milk", outside=True, keep_trusted=True) is MemoryWrite.REPLACED
    assert not scene.run(lambda tx: tx.memories.remove(USER, "own", keep_trusted=True))
    assert scene.run(lambda tx: tx.memories.remove(USER, "others", keep_trusted=True))
    assert (_found(scene, "coffee"), _found(scene, "poison milk")) == (["own"], [])


def _keep(
    scene: Scene, key: str, text: str, *, outside: bool = False, keep_trusted: bool = False
) -> MemoryWrite:
    scene.user()
    scene.clock.advance(MINUTE)
    memory = NewMemory(key=key, text=text, outside=outside)
    return scene.run(lambda tx: tx.memories.put(USER, memory, keep_trusted=keep_trusted))


def _found(scene: Scene, query: str, *, limit: int = 9) -> list[str]:
    words = query_words(query)
    return _keys(scene.run(lambda tx: tx.memories.search(USER, words, limit=limit)))


def _recalled(scene: Scene, query: str, *, limit: int) -> list[str]:
    words = query_words(query)
    return _keys(scene.run(lambda tx: tx.memories.recall(USER, words, limit=limit)))


def _keys(found: Sequence[Memory]) -> list[str]:
    return [memory.key for memory in found]
