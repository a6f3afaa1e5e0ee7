"""Who may consent: users themselves, and tokens with the scope for it; no token to its own work."""

from collections.abc import Callable
from contextlib import suppress

from backburner.actions import lookup
from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.actions.work import instructions
from backburner.actions.work.instructions import CheckInstructions
from backburner.core.accounts import Caller, Scope
from backburner.core.conversation import Conversation
from backburner.core.errors import NotAllowed, NotFound
from backburner.core.ids import ConversationId, QuestionId
from backburner.core.question import CONSENT, Purpose, Question
from backburner.core.transitions.change import changed_work
from backburner.ports import Tx


async def check_answer(deps: Deps, caller: Caller, question_id: QuestionId) -> None:
    """Refuse an answer that consents to something, from a caller who may not."""

    def work(tx: Tx) -> None:
        if tx.questions.purposes(caller.user, [question_id]) & CONSENT:
            asked_in = tx.questions.conversation_of(caller.user, question_id)
            opened = tx.conversations.load(caller.user, asked_in).questions
            asked = next((one for one in opened if one.id == question_id), None)
            check(tx, caller, asked_in, asked)

    await deps.store.read(work)


async def check_work(deps: Deps, caller: Caller, conversation_id: ConversationId) -> None:
    """Refuse a decision about proposed work, from a caller who may not consent to it."""
    await deps.store.read(lambda tx: check(tx, caller, conversation_id))


def check_scope(caller: Caller) -> None:
    if not caller.may(Scope.APPROVE):
        raise NotAllowed(
            "This token may not consent for its user.",
            hint="Answer in a browser or with `backburner answer` on the machine of the server;"
            " or create a token with the scope approve.",
        )


def check_instructions(tx: Tx, caller: Caller, work: Conversation) -> None:
    """Refuse a token that tells work what to do, was not given what that uses, and may not consent.

    Chats are for talking: whoever may write speaks there with what the chat uses.
    """
    lacks = instructions.find_lacking(tx, Origin.by(caller), work)
    if not lacks:
        return
    if caller.may(Scope.APPROVE):
        check(tx, caller, work.id)
        return
    things, options = zip(*lacks, strict=True)
    raise NotAllowed(
        f"This work uses {' and '.join(things)}, which this token was not given.",
        hint="Use a browser or the command line on the machine of the server, or a token with the"
        f" scope approve, or one that was created with `{' '.join(options)}`.",
    )


def instructions_checker(caller: Caller) -> CheckInstructions:
    return lambda tx, work: check_instructions(tx, caller, work)


def checker(caller: Caller) -> Callable[[Tx, ConversationId], None]:
    """Make a check of whether this caller may consent to the work of a conversation."""
    return lambda tx, conversation_id: check(tx, caller, conversation_id)


def check(
    tx: Tx, caller: Caller, conversation_id: ConversationId, question: Question | None = None
) -> None:
    """Refuse a caller who may not consent to the work of a conversation.

    Nor to the work that a question in it is about, if that is other work.
    """
    check_scope(caller)
    if caller.is_direct:
        return
    own = tx.mcp_clients.conversation_of(caller.user, caller.credential)
    concerned = [tx.conversations.load(caller.user, conversation_id)]
    if question is not None and question.purpose is Purpose.CHANGE:
        with suppress(NotFound):
            concerned.append(tx.conversations.load(caller.user, changed_work(question)))
    if any(above.id == own for one in concerned for above in lookup.ancestry(tx, one)):
        raise NotAllowed(
            "A token may not consent to work that it handed out itself.",
            hint="Answer in a browser, or with `backburner answer` on the machine of the server.",
        )
