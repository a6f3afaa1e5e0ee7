"""Collects the tools of a run, restricted to those its work may use."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.actions.work import folders
from backburner.core import tool_policy
from backburner.core.conversation import Conversation, Kind, Use
from backburner.core.ids import UserId
from backburner.core.run import Turn
from backburner.core.signed_in import SIGNED_IN_TOOL, granted_programs
from backburner.ports import Offer
from backburner.runs.retrying_store import with_retries
from backburner.tools.conversation import conversation_offers
from backburner.tools.jobs import job_offers
from backburner.tools.memories import memory_offers
from backburner.tools.progress import progress_offers
from backburner.tools.tasks import task_offers
from backburner.tools.workspace import CommandTerms


def no_workspace(user: UserId, terms: CommandTerms) -> Sequence[Offer]:
    del user, terms
    return ()


@dataclass(frozen=True, slots=True)
class Toolbox:
    deps: Deps
    #: Makes the file and command tools of a user.
    workspace: Callable[[UserId, CommandTerms], Sequence[Offer]] = no_workspace
    #: Whether programs can use the sign-ins of a single user here.
    has_sign_ins: bool = False

    async def has_others(self) -> bool:
        """Return whether more than one user has an account here."""
        return await self.deps.store.read(lambda tx: len(tx.accounts.page(limit=2)) > 1)

    async def _may_use(self, conversation: Conversation) -> bool:
        """Whether its folder, if it has one, is still among those of its user."""
        user, folder = conversation.user_id, conversation.folder
        if folder is None:
            return True
        return await self.deps.store.read(lambda tx: folders.is_usable(tx, self.deps, user, folder))

    async def offers(self, turn: Turn, conversation: Conversation) -> Sequence[Offer]:
        async def signed_in() -> frozenset[str]:
            return await self._signed_in(conversation)

        deps, origin = with_retries(self.deps), Origin.of(turn, conversation.uses)
        terms = CommandTerms(
            turn,
            tool_policy.choose_cage(conversation),
            self.has_others,
            folder=conversation.folder,
            folder_removed=not await self._may_use(conversation),
            may_sign_in=await self._may_sign_in(conversation),
            signed_in=signed_in,
        )
        # Nobody looks at discovery while it runs.
        is_watched = conversation.kind is not Kind.DISCOVERY
        progress = progress_offers(deps, turn) if is_watched else ()
        offers = (
            *conversation_offers(deps, turn),
            *task_offers(deps, origin),
            *memory_offers(deps, origin),
            *job_offers(deps, origin),
            *progress,
            *self.workspace(turn.user_id, terms),
        )
        allowed = tool_policy.allowed_tools(conversation)
        return [offer for offer in offers if tool_policy.is_tool_allowed(offer.tool, allowed)]

    async def _may_sign_in(self, conversation: Conversation) -> bool:
        if not self.has_sign_ins or not conversation.may_use(Use.SIGN_INS):
            return False
        return not await self.has_others()

    async def _signed_in(self, conversation: Conversation) -> frozenset[str]:
        """Return the programs whose sign-in the user has allowed here for good."""
        grants = await self.deps.store.read(
            lambda tx: tx.grants.valid(conversation.user_id, conversation.id)
        )
        return granted_programs(
            grant.words for grant in grants if grant.tool == SIGNED_IN_TOOL and grant.call is None
        )
