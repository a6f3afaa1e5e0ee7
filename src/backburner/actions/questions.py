"""Questions: answer (the first answer wins), snooze, remind, expire."""

from contextlib import suppress
from datetime import timedelta

from backburner.actions import active_limit, create, spending, steps
from backburner.actions.deps import Deps
from backburner.actions.steps import save
from backburner.actions.waits import inputs, reconnection
from backburner.core import notice, question, schedule, tool_policy, transitions
from backburner.core.accounts import Caller
from backburner.core.connections.inputs.input_request import InputValues
from backburner.core.conversation import Conversation, Status
from backburner.core.errors import BadAnswer, Conflict, NotFound
from backburner.core.ids import CallId, ConversationId, QuestionId, UserId
from backburner.core.question import NO, YES, Purpose, Question
from backburner.core.transitions import HAPPENED, LEAVE, Step
from backburner.core.transitions.change import changed_work
from backburner.core.work import task_test_run, views
from backburner.core.work.views import TaskStatus
from backburner.ports import Tx

#: Results of calls that were in doubt, by the answer.
SETTLED = {
    HAPPENED: "The owner says that this call was made.",
    LEAVE: "The owner says to leave this call alone, whether it was made or not.",
}
#: Questions handled in one transaction.
_BATCH = 20


async def answer(
    deps: Deps,
    user: UserId,
    question_id: QuestionId,
    given: str | InputValues,
    *,
    by: Caller | None = None,
) -> Conversation:
    """Answer an open question, with words or with values by name; the first answer wins."""

    def work(tx: Tx) -> Conversation:
        conversation_id = tx.questions.conversation_of(user, question_id)
        conversation = lock(tx, user, conversation_id, question_id)
        return settle(tx, deps, conversation, question_id, given, by=by)

    return await deps.store.transact(work)


def lock(
    tx: Tx, user: UserId, conversation_id: ConversationId, question_id: QuestionId
) -> Conversation:
    """Lock a conversation to answer a question in it, after everything else that may change."""
    seen = tx.conversations.load(user, conversation_id)
    changed = [
        changed_work(asked)
        for asked in seen.questions
        if asked.id == question_id and asked.purpose is Purpose.CHANGE
    ]
    if changed or views.task_status(seen) is TaskStatus.PROPOSED:
        # The user is locked before the conversation wherever work starts.
        tx.users.lock(user)
    for work_id in changed:
        # Children are locked before their parents.
        if work_id != seen.parent_id:
            with suppress(NotFound):
                tx.conversations.lock(user, work_id)
    return tx.conversations.lock(user, conversation_id)


def settle(
    tx: Tx,
    deps: Deps,
    before: Conversation,
    question_id: QuestionId,
    given: str | InputValues,
    *,
    by: Caller | None = None,
) -> Conversation:
    """Store an answer, with the credential it came by, and apply its consequences."""
    inputs_of = [
        asked
        for asked in before.questions
        if asked.id == question_id and asked.purpose is Purpose.INPUT
    ]
    # It goes to the server that asked, and nowhere else.
    kept = inputs.keep_answer(tx, deps, before, inputs_of[0], given) if inputs_of else None
    if kept is None and not isinstance(given, str):
        raise BadAnswer("This question takes no values.", hint="Send an `answer`.")
    text = given if isinstance(given, str) else ""
    step = transitions.answer(before, question_id, text, now=tx.now, kept=kept)
    active_limit.check(deps, tx, step.conversation, before=before)
    save(tx, step)
    tx.notices.mark_question_seen(before.user_id, before.id, question_id)
    if by is not None:
        credential = f"{by.kind} {by.credential} {by.name}".rstrip()
        tx.questions.keep_answerer(before.user_id, question_id, credential)
    for asked in before.questions:
        if asked.id == question_id:
            _settle(deps, tx, before, asked, step)
            if asked.purpose is Purpose.CHANGE and step.answered == ((asked.id, YES),):
                create.apply_change(tx, deps, step.conversation, asked)
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
        for user, question_id in due:
            conversation_id = tx.questions.conversation_of(user, question_id)
            conversation = tx.conversations.lock(user, conversation_id)
            asked = _find(conversation, question_id)
            if asked.expires_at is not None and asked.expires_at <= tx.now:
                step = transitions.expire(conversation, question_id, now=tx.now)
                save(tx, step)
                _settle(deps, tx, conversation, asked, step)
            else:
                tx.questions.snooze(user, question.remind(asked, now=tx.now))
                reminder = notice.of_question(asked)
                tx.conversations.save(Step(conversation=conversation, notices=(reminder,)))
        return len(due)

    return await deps.store.transact(work)


def _find(conversation: Conversation, question_id: QuestionId) -> Question:
    for asked in conversation.questions:
        if asked.id == question_id:
            return asked
    raise Conflict("This question has been answered or withdrawn.")


def _settle(deps: Deps, tx: Tx, before: Conversation, question: Question, step: Step) -> None:
    """Apply the consequences of an answer beyond its conversation."""
    ((_, answer),) = step.answered
    if question.purpose is Purpose.IN_DOUBT and answer in SETTLED:
        # The result of an identical call in the next run.
        tx.tool_calls.settle(before.user_id, CallId(question.binds_to["call_id"]), SETTLED[answer])
    if (task_id := question.binds_to.get(tool_policy.GRANTS_TO_TASK)) is not None:
        _grant_to_task(tx, before, question, answer, ConversationId(task_id))
    if question.purpose is Purpose.ALLOWANCE:
        spending.apply_answer(deps, tx, before, question, answer)
    if question.purpose in (Purpose.IN_DOUBT, Purpose.INPUT):
        # The run that asked may have been handed back.
        tx.runs.resume_waiting(before.user_id, before.id, at=tx.now)
    if question.purpose is Purpose.RECONNECT:
        reconnection.apply_answer(tx, before, question, answer)
    if question.purpose is Purpose.PROPOSAL and answer == NO:
        # A test run of it may be in progress.
        for child in tx.conversations.open_children(before.user_id, before.id):
            steps.stop_all(tx, child)


def _grant_to_task(
    tx: Tx, job: Conversation, question: Question, answer: str, task_id: ConversationId
) -> None:
    """Give a task what was approved after its test run, until the day after its next run."""
    if answer == NO:
        return
    task = tx.conversations.lock(job.user_id, task_id)
    if task.status is Status.ARCHIVED or not task_test_run.is_same_work(task, job):
        raise Conflict(
            "The task was changed after this test run.",
            hint="Answer no, and start another test run.",
        )
    times = () if task.schedule is None else schedule.upcoming(task.schedule, now=tx.now, count=1)
    next_run_at = max(filter(None, (tx.now, task.next_run_at, *times)))
    given = tool_policy.grants_given(question, answer, now=next_run_at)
    tx.grants.give(job.user_id, task_id, given)
