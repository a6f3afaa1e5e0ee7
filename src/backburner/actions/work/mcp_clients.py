"""External MCP clients: each token has a conversation, the parent of all jobs it starts.

That conversation only groups jobs. It has no messages and no replies.
"""

from dataclasses import replace

from backburner.actions.deps import Deps
from backburner.actions.origin import NO_CONVERSATION, Origin
from backburner.actions.work import chosen_connections
from backburner.core import routing, transitions
from backburner.core.accounts import Caller
from backburner.core.conversation import MAX_TITLE_CHARS
from backburner.core.ids import ConversationId, new_conversation_id
from backburner.core.transitions import Step
from backburner.ports import Tx

#: Client names are cut to this length: they are outside text.
MAX_CLIENT_NAME_CHARS = 60


async def find_origin(deps: Deps, caller: Caller) -> Origin:
    """Find the origin of a token; without a conversation, one that matches nothing."""
    conversation_id = await deps.store.read(
        lambda tx: tx.mcp_clients.conversation_of(caller.user, caller.credential) or NO_CONVERSATION
    )
    return Origin.by(caller, conversation_id)


async def ensure_origin(deps: Deps, caller: Caller, *, client: str = "") -> Origin:
    """Find or create the origin of a token; `client` is the client's name, if known."""
    new = new_conversation_id()

    def work(tx: Tx) -> ConversationId:
        known = tx.mcp_clients.conversation_of(caller.user, caller.credential)
        return known or _assign_conversation(deps, tx, caller, client, new)

    return Origin.by(caller, await deps.store.transact(work))


def _assign_conversation(
    deps: Deps, tx: Tx, caller: Caller, client: str, new: ConversationId
) -> ConversationId:
    """Assign a conversation: that of a former token with the same name and uses, or a new one."""
    # Concurrent calls must not create two conversations.
    tx.users.lock(caller.user)
    conversation_id = tx.mcp_clients.conversation_of(caller.user, caller.credential)
    if conversation_id is None:
        name = tx.mcp_clients.name_of(caller.user, caller.credential)
        conversation_id = tx.mcp_clients.former_conversation_of(caller.user, name, now=tx.now)
        if conversation_id is None or not _has_uses(tx, caller, conversation_id):
            conversation_id = new
            chat = transitions.start_chat(new, caller.user, now=tx.now).conversation
            named = transitions.rename(chat, make_title(client, name)).conversation
            group = replace(
                named,
                keeps_only=True,
                uses=caller.work_uses,
                connections=_choose_connections(tx, caller),
            )
            tx.conversations.add(Step(conversation=routing.assign(group, deps.routes)))
        tx.mcp_clients.remember_conversation(caller.user, caller.credential, conversation_id)
    return conversation_id


def _has_uses(tx: Tx, caller: Caller, conversation_id: ConversationId) -> bool:
    known = tx.conversations.load(caller.user, conversation_id)
    given = _choose_connections(tx, caller)
    return (known.uses, known.connections) == (caller.work_uses, given)


def _choose_connections(tx: Tx, caller: Caller) -> tuple[str, ...] | None:
    return chosen_connections.for_chat(tx, caller.user, None, given=caller.work_connections)


def make_title(client: str, token: str) -> str:
    printable = "".join(char for char in client if char.isprintable())
    name = " ".join(printable.split())[:MAX_CLIENT_NAME_CHARS]
    title = f"{name} (token {token})" if name else token
    return title[:MAX_TITLE_CHARS].strip() or "MCP client"
