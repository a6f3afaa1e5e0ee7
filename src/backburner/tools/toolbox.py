"""All that an agent is offered in a run, put together and held to what its work may use."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.core import tool_policy
from backburner.core.conversation import Conversation
from backburner.core.ids import UserId
from backburner.core.run import Turn
from backburner.ports import Offer
from backburner.tools.conversation import conversation_offers
from backburner.tools.jobs import job_offers
from backburner.tools.memories import memory_offers
from backburner.tools.tasks import task_offers


def no_workspace(user: UserId) -> Sequence[Offer]:
    del user
    return ()


@dataclass(frozen=True, slots=True)
class Toolbox:
    deps: Deps
    #: The files and commands of a user.
    workspace: Callable[[UserId], Sequence[Offer]] = no_workspace

    async def offers(self, turn: Turn, conversation: Conversation) -> Sequence[Offer]:
        """Collect what the agent may call; what its work is not allowed it is not shown."""
        everything = (
            *conversation_offers(self.deps, turn),
            *task_offers(self.deps, Origin.of(turn)),
            *memory_offers(self.deps, Origin.of(turn)),
            *job_offers(self.deps, Origin.of(turn)),
            *self.workspace(turn.user_id),
        )
        scope = tool_policy.allowed_tools(conversation)
        return [one for one in everything if tool_policy.is_tool_allowed(one.tool, scope)]
