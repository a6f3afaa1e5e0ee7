"""Who may consent: users themselves, and tokens with the scope for it; no token to its own work."""

from backburner.actions import lookup
from backburner.actions.deps import Deps
from backburner.core.accounts import Caller, Scope
from backburner.core.errors import NotAllowed
from backburner.core.ids import ConversationId, QuestionId
from backburner.core.question import CONSENT
from backburner.ports import Tx


async def check_answer(deps: Deps, caller: Caller, question_id: QuestionId) -> None:
    """Refuse an answer that consents to something, from a caller who may not."""

    def work(tx: Tx) -> None:
        if tx.questions.purposes(caller.user, [question_id]) & CONSENT:
            check(tx, caller, tx.questions.conversation_of(caller.user, question_id))

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


def check(tx: Tx, caller: Caller, conversation_id: ConversationId) -> None:
    """Refuse a caller who may not consent to the work of a conversation."""
    check_scope(caller)
    if caller.is_direct:
        return
    own = tx.mcp_clients.conversation_of(caller.user, caller.credential)
    conversation = tx.conversations.load(caller.user, conversation_id)
    if any(one.id == own for one in lookup.ancestry(tx, conversation)):
        raise NotAllowed(
            "A token may not consent to work that it handed out itself.",
            hint="Answer in a browser, or with `backburner answer` on the machine of the server.",
        )
