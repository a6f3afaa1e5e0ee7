"""Clients outside that use our tools: each token has a conversation, and all it hands out is there.

That conversation holds things together. Nobody talks in it, and nothing is answered there.
"""

from dataclasses import replace

from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.core import routing, transitions
from backburner.core.accounts import Caller
from backburner.core.conversation import MAX_TITLE_CHARS
from backburner.core.ids import ConversationId, new_conversation_id
from backburner.core.transitions import Step
from backburner.ports import Tx

#: What nothing has for its id.
NO_CONVERSATION = ConversationId("")
#: Of what a client says it is called: anybody may have written that.
MAX_CLIENT_NAME_CHARS = 60


async def find_origin(deps: Deps, caller: Caller) -> Origin:
    """Find where a token hands out work from; where it never has, that is nowhere."""
    place = await deps.store.transact(
        lambda tx: tx.mcp_clients.conversation_of(caller.user, caller.credential) or NO_CONVERSATION
    )
    return Origin(caller.user, place)


async def ensure_origin(deps: Deps, caller: Caller, *, client: str = "") -> Origin:
    """Find it, and make it where it is not there; `client` is what uses the token, if known."""
    new = new_conversation_id()

    def work(tx: Tx) -> ConversationId:
        return tx.mcp_clients.conversation_of(
            caller.user, caller.credential
        ) or _assign_conversation(deps, tx, caller, client, new)

    return Origin(caller.user, await deps.store.transact(work))


def _assign_conversation(
    deps: Deps, tx: Tx, caller: Caller, client: str, new: ConversationId
) -> ConversationId:
    """Give a token its place; where it replaces one that has ended, the place of that."""
    # Two calls at once must not make two.
    tx.users.lock(caller.user)
    place = tx.mcp_clients.conversation_of(caller.user, caller.credential)
    if place is None:
        name = tx.mcp_clients.name_of(caller.user, caller.credential)
        place = tx.mcp_clients.former_conversation_of(caller.user, name, now=tx.now)
        if place is None:
            place = new
            born = transitions.start_chat(new, caller.user, now=tx.now).conversation
            named = transitions.rename(born, make_title(client, name)).conversation
            kept = replace(named, keeps_only=True)
            tx.conversations.add(Step(conversation=routing.assign(kept, deps.routes)))
        tx.mcp_clients.remember_conversation(caller.user, caller.credential, place)
    return place


def make_title(client: str, token: str) -> str:
    shown = "".join(sign for sign in client if sign.isprintable())
    known_as = " ".join(shown.split())[:MAX_CLIENT_NAME_CHARS]
    title = f"{known_as} (token {token})" if known_as else token
    return title[:MAX_TITLE_CHARS].strip() or "A client over MCP"
