"""Finding open work by the name a user gives it."""

from collections.abc import Sequence

from backburner.core.conversation import Conversation, Status
from backburner.core.validation import normalize_title

_ALL = frozenset({"all", "everything", "all of it", "all of them"})
_THIS = frozenset({"this", "it", "this conversation"})


def is_open(conversation: Conversation) -> bool:
    """Return whether it has work, paused or not, or an open question."""
    asks = conversation.status is Status.WAITING_INPUT
    return conversation.schedule is not None or asks


def means_all(name: str) -> bool:
    return _plain(name) in _ALL


def find_named(
    name: str, own: Conversation | None, others: Sequence[Conversation]
) -> Sequence[Conversation]:
    """Find all work that a name may mean: by id, by its whole name, else by a part of it.

    An empty name means all work, and `this` means the conversation's own work.
    """
    works = [*(() if own is None else (own,)), *others]
    words = _plain(name)
    if not words or words in _ALL:
        return works
    if words in _THIS and own is not None:
        return [own]
    conditions = (
        lambda work: work.id == name.strip(),
        lambda work: words in _names(work),
        lambda work: any(words in own_name for own_name in _names(work)),
    )
    matches = ([work for work in works if condition(work)] for condition in conditions)
    return next(filter(None, matches), [])


def _names(work: Conversation) -> Sequence[str]:
    return (_plain(work.title), _plain(str(work.state.context.get("prompt", ""))))


def _plain(text: str) -> str:
    return normalize_title(text).casefold().strip(" .!?\"'“”")
