"""Facts of a user that every page shows: name, zone, what needs them, and what they spent today."""

from dataclasses import dataclass
from datetime import datetime

from backburner.actions import spending
from backburner.actions.deps import Deps
from backburner.actions.origin import NO_CONVERSATION
from backburner.core import allowance, question
from backburner.core.allowance import Allowance, AllowanceScope, Amount
from backburner.core.ids import UserId
from backburner.ports import ConversationFilter, Tx, UserProfile, View

#: More are not counted.
MAX_COUNTED = 99


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFacts:
    now: datetime
    profile: UserProfile
    #: Those that ask now: none that was put off.
    open_questions: int
    tasks: int
    #: Runs in progress.
    working: int
    has_conversations: bool
    spent_today: Amount
    #: What may be spent today.
    day: Allowance | None
    #: No model was set up; the demo agent replies.
    is_demo: bool


@dataclass(frozen=True, slots=True)
class Present:
    """The present, and the zone in which times are shown."""

    now: datetime
    zone: str


async def load_present(deps: Deps, user: UserId) -> Present:
    return await deps.store.read(lambda tx: Present(tx.now, tx.users.load(user).zone))


async def load_newest_change(deps: Deps, user: UserId) -> int:
    """Load the number of the newest change, before what may be changed after it."""
    return await deps.store.read(lambda tx: tx.events.latest(user))


async def load_facts(deps: Deps, user: UserId) -> PageFacts:
    def work(tx: Tx) -> PageFacts:
        profile = tx.browse.profile(user)
        today = allowance.local_day(tx.now, zone=profile.zone)[0]
        key = f"day:{today.isoformat()}"
        account = tx.spending.state(user, NO_CONVERSATION, [key])
        limits = spending.effective_allowances(deps, account)
        tasks = tx.browse.conversations(
            user, ConversationFilter(view=View.TASKS, archived=False), None, limit=MAX_COUNTED
        )
        some = tx.browse.conversations(user, ConversationFilter(archived=False), None, limit=1)
        asked = tx.browse.questions(user, None, limit=MAX_COUNTED)
        return PageFacts(
            now=tx.now,
            profile=profile,
            open_questions=sum(
                question.postponed_until(one.question, now=tx.now) is None for one in asked
            ),
            tasks=len(tasks.conversations),
            working=tx.browse.count_running(user),
            has_conversations=bool(some.conversations),
            spent_today=account.spent.get(key, Amount()),
            day=next((one for one in limits if one.scope is AllowanceScope.DAY), None),
            is_demo=deps.default_profile in deps.injection_proof,
        )

    return await deps.store.read(work)
