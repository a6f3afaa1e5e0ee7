"""Questions: answer (the first answer wins), snooze, remind, expire."""

from datetime import timedelta

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
    HAPPENED: "The owner says that this call was made.",
    LEAVE: "The owner says to leave this call alone, whether it was made or not.",
}
#: Questions handled in one transaction.
_BATCH = 20


async def answer(deps: Deps, user: UserId, question_id: QuestionId, text: str) -> Conversation:
    """Answer an open question; the first answer wins."""

    def work(tx: Tx) -> Conversation:
        where = tx.questions.conversation_of(user, question_id)
        if views.task_status(tx.conversations.load(user, where)) is TaskStatus.PROPOSED:
            # The user is locked before the conversation wherever work starts.
            tx.users.lock(user)
        return settle(tx, deps, tx.conversations.lock(user, where), question_id, text)

    return await deps.store.transact(work)


def settle(
    tx: Tx, deps: Deps, found: Conversation, question_id: QuestionId, text: str
) -> Conversation:
    """Store an answer and apply its consequences."""
    step = transitions.answer(found, question_id, text, now=tx.now)
    active_limit.check(deps, tx, step.conversation, before=found)
    save(tx, step)
    for asked in found.questions:
        if asked.id == question_id:
            _settle(tx, found, asked, step)
    return step.conversation


async def snooze(deps: Deps, user: UserId, question_id: QuestionId, delay: timedelta) -> None:
    """Postpone a question: its next reminder comes after the delay."""

    def work(tx: Tx) -> None:
        conversation = tx.conversations.lock(user, tx.questions.conversation_of(user, question_id))
        asked = _find(conversation, question_id)
        tx.questions.snooze(user, question.snooze(asked, until=tx.now + delay, now=tx.now))

    await deps.store.transact(work)


async def remind(deps: Deps) -> int:
    """Remind of questions that are due, and answer expired ones with their default."""

    def work(tx: Tx) -> int:
        due = tx.questions.due(limit=_BATCH)
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
    """Apply the consequences of an answer beyond its conversation."""
    ((_, said),) = step.answered
    if asked.purpose is Purpose.IN_DOUBT and said in _SETTLED:
        # The result of an identical call in the next run.
        tx.tool_calls.settle(found.user_id, CallId(asked.binds_to["call_id"]), _SETTLED[said])
    if asked.purpose is Purpose.ALLOWANCE:
        spending.answered(tx, found, asked, said)
    if asked.purpose is Purpose.PROPOSAL and said == NO:
        # A test run of it may be in progress.
        for child in tx.conversations.open_children(found.user_id, found.id):
            steps.stop_all(tx, child)
