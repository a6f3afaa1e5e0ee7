"""Instructions from tokens for work that uses more than the token was given.

What a token hands out has no connection and no folder unless the token was given it by name. To
change what other work does comes to the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from backburner.actions.origin import Origin
from backburner.core.connections import access
from backburner.core.conversation import Conversation, Use, common_uses
from backburner.core.transitions import Step, Terms
from backburner.ports import Tx

#: Refuses a caller who may not tell work what to do.
CheckInstructions = Callable[[Tx, Conversation], None]


def are_changed(before: Conversation, step: Step) -> bool:
    """Return whether work is told something else; a proposal is asked about anew in any case."""
    old, new = Terms.of(before), Terms.of(step.conversation)
    is_other = (old.prompt, old.description, old.tools) != (new.prompt, new.description, new.tools)
    return is_other and not step.asked


def need_consent(
    tx: Tx, origin: Origin, here: Conversation, before: Conversation, step: Step
) -> bool:
    """Return whether an agent or a client of a token may only propose this."""
    is_changed = are_changed(before, step)
    return is_changed and bool(find_lacking(tx, origin, step.conversation, here=here))


def find_lacking(
    tx: Tx, origin: Origin, work: Conversation, *, here: Conversation | None = None
) -> Sequence[tuple[str, str]]:
    """Find what work uses and a token was not given, in words, with the options that give it.

    `here` is the conversation of its agent or of its client.
    """
    uses = origin.uses if here is None else common_uses(here.uses, origin.uses)
    if uses is None:
        return ()
    used = _find_used(tx, work)
    given = used if origin.connections is None else used & origin.connections
    if here is not None:
        given = given.intersection(here.connections or ())
    lacks = [(f"the connection {name}", f"--connection {name}") for name in sorted(used - given)]
    if work.folder is not None and work.may_use(Use.FOLDERS) and Use.FOLDERS not in uses:
        lacks.append(("a folder", "--with folders"))
    return lacks


def _find_used(tx: Tx, work: Conversation) -> frozenset[str]:
    """Return the names of the connections that work may use, also of disabled ones."""
    if not access.has_any(work):
        return frozenset()
    existing = [replace(one, disabled=False) for one in tx.connections.list(work.user_id)]
    return frozenset(one.name for one in access.usable(work, existing))
