"""Work that is open, and how it is found by what people call it."""

from collections.abc import Sequence

from backburner.core.conversation import Conversation, Status

_ALL = frozenset({"all", "everything", "all of it", "all of them"})
_THIS = frozenset({"this", "it", "this conversation"})


def is_open(conversation: Conversation) -> bool:
    """See whether there is work, paused or not, or a question about some."""
    asks = conversation.status is Status.WAITING_INPUT
    return conversation.schedule is not None or asks


def means_all(called: str) -> bool:
    return _plain(called) in _ALL


def find_named(
    called: str, own: Conversation | None, others: Sequence[Conversation]
) -> Sequence[Conversation]:
    """Find all that a name may mean: by id, by their whole name, else by a part of it.

    Without a name all of it is meant, and `this` is the conversation's own work.
    """
    works = [*(() if own is None else (own,)), *others]
    words = _plain(called)
    if not words or words in _ALL:
        return works
    if words in _THIS and own is not None:
        return [own]
    fits = (
        lambda work: work.id == called.strip(),
        lambda work: words in _names(work),
        lambda work: any(words in name for name in _names(work)),
    )
    found = ([work for work in works if fit(work)] for fit in fits)
    return next(filter(None, found), [])


def _names(work: Conversation) -> Sequence[str]:
    return (_plain(work.title), _plain(str(work.state.context.get("prompt", ""))))


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold().strip(" .!?\"'“”")
