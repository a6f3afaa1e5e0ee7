"""Questions: answered once by whoever is first, put off, brought up again, run out."""

from datetime import datetime, timedelta

from backburner.actions import active_limit, spending, steps
from backburner.actions.deps import Deps
from backburner.actions.steps import save
from backburner.core import notice, question, transitions
from backburner.core.conversation import Conversation
from backburner.core.errors import Conflict
from backburner.core.ids import CallId, QuestionId, UserId
from backburner.core.question import NO, Purpose, Question
from backburner.core.transitions import HAPPENED, LEAVE, Step
from backburner.core.work import views
from backburner.core.work.views import TaskStatus
from backburner.ports import Tx

_SETTLED = {
    HAPPENED: "Its owner says that it happened.",
    LEAVE: "Its owner says to leave it, whether it happened or not.",
}
#: As many are looked at in one transaction.
_SOME = 20


async def answer(deps: Deps, user: UserId, question_id: QuestionId, text: str) -> Conversation:
    """Answer an open question; the first answer wins."""

    def work(tx: Tx) -> Conversation:
        where = tx.questions.conversation_of(user, question_id)
        if views.task_status(tx.conversations.load(user, where)) is TaskStatus.PROPOSED:
            # Before the conversation, as everybody does who lets work begin.
            tx.users.lock(user)
        return settle(tx, deps, tx.conversations.lock(user, where), question_id, text)

    return await deps.store.transact(work)


def settle(
    tx: Tx, deps: Deps, found: Conversation, question_id: QuestionId, text: str
) -> Conversation:
    """Write an answer down, with all that follows from it."""
    step = transitions.answer(found, question_id, text, now=tx.now)
    active_limit.check(deps, tx, step.conversation, before=found)
    save(tx, step)
    for asked in found.questions:
        if asked.id == question_id:
            _settle(tx, found, asked, step)
    return step.conversation


async def snooze(deps: Deps, user: UserId, question_id: QuestionId, *, until: datetime) -> None:
    """Put a question off: it is brought up again then."""

    def work(tx: Tx) -> None:
        found = tx.conversations.lock(user, tx.questions.conversation_of(user, question_id))
        tx.questions.snooze(
            user, question.snooze(_find(found, question_id), until=until, now=tx.now)
        )

    await deps.store.transact(work)


async def snooze_for(deps: Deps, user: UserId, question_id: QuestionId, pause: timedelta) -> None:
    """Put a question off for so long."""

    def work(tx: Tx) -> None:
        found = tx.conversations.lock(user, tx.questions.conversation_of(user, question_id))
        later = question.snooze(_find(found, question_id), until=tx.now + pause, now=tx.now)
        tx.questions.snooze(user, later)

    await deps.store.transact(work)


async def bring_up(deps: Deps) -> int:
    """Remind of questions whose time has come, and let those count as answered that ran out."""

    def work(tx: Tx) -> int:
        due = tx.questions.due(limit=_SOME)
        for user, which in due:
            found = tx.conversations.lock(user, tx.questions.conversation_of(user, which))
            asked = _find(found, which)
            if asked.expires_at is not None and asked.expires_at <= tx.now:
                step = transitions.expire(found, which, now=tx.now)
                save(tx, step)
                _settle(tx, found, asked, step)
            else:
                tx.questions.snooze(user, question.remind(asked, now=tx.now))
                tx.conversations.save(
                    Step(conversation=found, notices=(notice.of_question(found, asked),))
                )
        return len(due)

    return await deps.store.transact(work)


def _find(conversation: Conversation, question_id: QuestionId) -> Question:
    for asked in conversation.questions:
        if asked.id == question_id:
            return asked
    raise Conflict("This question has been answered or withdrawn.")


def _settle(tx: Tx, found: Conversation, asked: Question, step: Step) -> None:
    """Do what an answer means beyond the conversation itself."""
    ((_, said),) = step.answered
    if asked.purpose is Purpose.IN_DOUBT and said in _SETTLED:
        # An identical call of the next run gets this for an answer.
        tx.tool_calls.settle(found.user_id, CallId(asked.binds_to["call_id"]), _SETTLED[said])
    if asked.purpose is Purpose.ALLOWANCE:
        spending.answered(tx, found, asked, said)
    if asked.purpose is Purpose.PROPOSAL and said == NO:
        # It may be being tried out.
        for child in tx.conversations.open_children(found.user_id, found.id):
            steps.stop_all(tx, child)
