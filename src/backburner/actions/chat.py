"""Chat: store messages, find and stop replies. Replies are given by workers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from backburner.actions import questions, steps
from backburner.actions.accounts import consent
from backburner.actions.deps import Deps
from backburner.actions.steps import save
from backburner.actions.work import chosen_connections, files, folders
from backburner.actions.work.replaced_work import ReplacedWork
from backburner.core import routing, transitions
from backburner.core.accounts import Caller
from backburner.core.connections.sign_in import CONNECTION
from backburner.core.content.attachment import Attachment
from backburner.core.content.file import FileReference
from backburner.core.conversation import (
    Conversation,
    Kind,
    Message,
    MessageRole,
    OnRepeatedFailure,
    Source,
    Uses,
)
from backburner.core.errors import Conflict, NotAllowed, NotFound
from backburner.core.ids import (
    ConversationId,
    ItemId,
    MessageId,
    QuestionId,
    UserId,
    new_conversation_id,
    new_message_id,
)
from backburner.core.prompt import TRUNCATION_MARK
from backburner.core.question import (
    CONSENT,
    DECIDED_IN_CHAT,
    YES,
    Purpose,
    Question,
    accept_answer,
    is_exact_answer,
    match_chat_message,
)
from backburner.core.run import Run, RunKind, RunStatus
from backburner.core.transitions import NewMessage, Step, Stops
from backburner.core.transitions.change import changed_work, from_data
from backburner.core.transitions.edit import Terms
from backburner.core.transitions.step import system_message
from backburner.core.validation import check_message
from backburner.core.work.proposal import is_given_sign_ins
from backburner.ports import Reply, ReplyDraft, Tx


@dataclass(frozen=True, slots=True)
class UserMessage:
    """The words that a user sends, and files."""

    text: str
    attachments: Sequence[Attachment] = ()


@dataclass(frozen=True, slots=True)
class SentMessage:
    message: Message
    #: The inbox items that a run has to serve before the message is answered.
    items: frozenset[ItemId]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewChat:
    #: The first message, and its files.
    text: str | None = None
    attachments: Sequence[Attachment] = ()
    title: str = ""
    #: None: the routes decide.
    profile: str | None = None
    #: A folder that was added, by its path or name; None: the private workspace.
    folder: str | None = None
    #: The names of connections; None: all that chats use.
    connections: Sequence[str] | None = None
    uses: Uses = None
    #: The connections that a token was given, if one starts the chat.
    given: frozenset[str] | None = None
    on_repeated_failure: OnRepeatedFailure = OnRepeatedFailure.NOTIFY


async def start(deps: Deps, user: UserId, new: NewChat | None = None) -> Conversation:
    """Start a chat."""
    new = new or NewChat()

    def work(tx: Tx) -> Conversation:
        started = transitions.start_chat(new_conversation_id(), user, now=tx.now).conversation
        named = transitions.rename(started, new.title).conversation if new.title else started
        asked = replace(
            named,
            requested_profile=new.profile,
            folder=folders.choose(tx, deps, user, new.folder, here=None, uses=new.uses),
            uses=new.uses,
            connections=chosen_connections.for_chat(tx, user, new.connections, given=new.given),
            on_repeated_failure=new.on_repeated_failure,
        )
        chat = routing.assign(asked, deps.routes)
        step = Step(conversation=chat)
        if new.text is not None:
            step = transitions.receive_message(
                chat,
                new.text,
                message_id=new_message_id(),
                now=tx.now,
                files=files.attach(tx, user, new.attachments),
            )
        tx.conversations.add(step)
        return step.conversation

    return await deps.store.transact(work)


async def send(
    deps: Deps,
    user: UserId,
    conversation_id: ConversationId,
    message: str | UserMessage,
    *,
    profile: str | None = None,
    by: Caller | None = None,
    answers: QuestionId | None = None,
) -> SentMessage:
    """Store a message; the reply follows later, under `profile` if one is given.

    A yes or no may decide a proposal, if `by` may consent; `answers` is the question it is for.
    """
    message_id = new_message_id()
    text, attachments = _read(message)
    _check_profile(deps, profile)

    def work(tx: Tx) -> SentMessage:
        attached = files.attach(tx, user, attachments)
        # A decision is a plain yes or no: whoever attaches something has more to say.
        meant = None if attached else _find_proposal(tx, by, conversation_id, text, answers)
        if by is not None and meant is not None:
            step = _decide(tx, deps, by, conversation_id, message_id, text, meant)
            return _sent_message(tx, step, message_id, text)
        conversation = tx.conversations.lock(user, conversation_id)
        if answers is not None:
            _check_pending(conversation, answers, text)
        if by is not None and not _is_answer(conversation, text):
            _check_instructions(tx, by, conversation)
        step = transitions.receive_message(
            conversation, text, message_id=message_id, now=tx.now, profile=profile, files=attached
        )
        save(tx, step)
        return _sent_message(tx, step, message_id, text, attached)

    return await deps.store.transact(work)


async def find_reply(
    deps: Deps, caller: Caller, conversation_id: ConversationId, sent: SentMessage
) -> Reply | Sequence[ReplyDraft]:
    """Find the reply to a message, or else the drafts of one that another process gives.

    A caller whose credential has ended finds neither.
    """
    user = caller.user
    # Before the read: a stored draft lags behind the pieces that were published here.
    is_written_here = deps.drafts.is_writing(user, conversation_id)

    def work(tx: Tx) -> Reply | Sequence[ReplyDraft]:
        if not tx.credentials.valid([(user, caller.credential)], now=tx.now):
            return ()
        reply = tx.replies.find(user, conversation_id, sent.message.id, sent.items)
        if reply is not None:
            return _with_questions(tx, user, sent.message, reply)
        return () if is_written_here else tx.events.drafts(user, [conversation_id])

    return await deps.store.read(work)


async def has_begun(deps: Deps, user: UserId, conversation_id: ConversationId) -> bool:
    """Return whether a run is in progress in a conversation, of whatever kind."""
    row = await deps.store.read(lambda tx: tx.browse.conversation(user, conversation_id))
    return row.running is not None


def _with_questions(tx: Tx, user: UserId, message: Message, reply: Reply) -> Reply:
    """Add the questions that a reply has asked or waits for, also those of a run that crashed."""
    run, here = reply.run, message.conversation_id
    if run is None:
        return reply
    asked = [
        (here, one)
        for one in tx.questions.open_of(user, here)
        if one.run_id == run.id
        or (one.run_kind is RunKind.REPLY and one.asked_at > message.created_at)
    ]
    known = {one.id for _, one in asked}
    elsewhere = [one for one in _asked_elsewhere(tx, user, run, reply) if one[1].id not in known]
    return replace(reply, questions=[*asked, *elsewhere])


def _asked_elsewhere(
    tx: Tx, user: UserId, run: Run, reply: Reply
) -> Sequence[tuple[ConversationId, Question]]:
    """Find the question that stops a reply, if its user was asked it in another conversation."""
    if run.waits_for_user and run.connection is not None:
        opened = tx.questions.open_with(user, Purpose.RECONNECT)
        return [one for one in opened if one[1].binds_to.get(CONNECTION) == run.connection]
    if run.status is RunStatus.FAILURE:
        said = "\n".join(message.content for message in reply.messages)
        opened = tx.questions.open_with(user, Purpose.ALLOWANCE)
        return [one for one in opened if one[1].prompt in said]
    return ()


async def stop(deps: Deps, user: UserId, conversation_id: ConversationId) -> None:
    """Stop a running or waiting reply; the text so far is kept."""

    def work(tx: Tx) -> None:
        conversation = tx.conversations.lock(user, conversation_id)
        if tx.runs.stop_reply(user, conversation_id):
            return
        items = tx.inbox.waiting(user, conversation_id, RunKind.REPLY)
        if not items and not steps.has_run(tx, conversation, RunKind.REPLY, RunStatus.QUEUED):
            raise Conflict("There is no reply to stop.")
        save(tx, Step(conversation=conversation, stops=Stops.REPLIES))

    await deps.store.transact(work)


async def edit_last(
    deps: Deps,
    user: UserId,
    conversation_id: ConversationId,
    message: str | UserMessage,
    *,
    profile: str | None = None,
    by: Caller | None = None,
    replaces: MessageId | None = None,
) -> SentMessage:
    """Replace the user's last message; everything after it is removed with it.

    Work that replies to it had set up is stopped. It is refused if the last one is another than
    `replaces`.
    """
    text, attachments = _read(message)
    check_message(text)
    _check_profile(deps, profile)
    message_id = new_message_id()

    def work(tx: Tx) -> SentMessage:
        last = tx.messages.last_of_user(user, conversation_id)
        if last is None:
            tx.conversations.load(user, conversation_id)
            raise Conflict("There is no message to edit.")
        set_up = ReplacedWork(tx, user, last, again=last.content == text)
        set_up.stop_children()
        conversation = tx.conversations.lock(user, conversation_id)
        if by is not None:
            _check_instructions(tx, by, conversation)
        attached = files.attach(tx, user, attachments)
        removed = tx.messages.remove_last(user, conversation_id)
        if removed != last.id or replaces not in (None, removed):
            raise Conflict(
                "You have sent another message since.", hint="Edit that one, or send a new one."
            )
        tx.runs.stop_reply(user, conversation_id)
        # The agent's session contains the removed messages, so a new one starts.
        fresh = replace(set_up.stop_own(conversation), session=None, summarized=False)
        if conversation.summarized:
            tx.summaries.delete(user, conversation_id)
        if conversation.session is not None:
            tx.sessions.delete(user, conversation_id, conversation.session.id)
        notes = tuple(set_up.settle())
        stopped = Step(conversation=fresh, messages=notes, stops=Stops.REPLIES)
        save(tx, stopped)
        step = transitions.receive_message(
            stopped.conversation,
            text,
            message_id=message_id,
            now=tx.now,
            profile=profile,
            files=attached,
        )
        save(tx, step)
        # Last: the new message may have files of the one that it replaces.
        tx.messages.detach_replaced(user, conversation_id)
        return _sent_message(tx, step, message_id, text, attached)

    return await deps.store.transact(work)


def _read(message: str | UserMessage) -> tuple[str, Sequence[Attachment]]:
    return (message, ()) if isinstance(message, str) else (message.text, message.attachments)


def _check_profile(deps: Deps, profile: str | None) -> None:
    if profile is not None:
        routing.require(deps.routes, profile)


def _find_proposal(
    tx: Tx,
    by: Caller | None,
    conversation_id: ConversationId,
    text: str,
    answers: QuestionId | None,
) -> tuple[ConversationId, Question] | None:
    """Find the proposal that a yes or no decides: the one it names, or the one shown last."""
    if by is None or (answers is None and not is_exact_answer(text)):
        return None
    opened = tx.questions.open_around(by.user, conversation_id)
    if answers is not None:
        named = [one for one in opened if one[1].id == answers]
        if named and named[0][1].purpose in DECIDED_IN_CHAT:
            consent.check(tx, by, *named[0])
            _check_plain(tx, by.user, named[0], text)
            return named[0]
        return None
    if len(opened) != 1 or opened[0][1].purpose not in DECIDED_IN_CHAT:
        return None
    last = tx.messages.recent(by.user, conversation_id, limit=1)
    if not last or last[0].shows != opened[0][1].id:
        return None
    try:
        consent.check(tx, by, *opened[0])
        _check_plain(tx, by.user, opened[0], text)
    except (NotAllowed, Conflict):
        # It is talk, then: the agent hears it, and the question stays open.
        return None
    return opened[0]


def _check_plain(tx: Tx, user: UserId, meant: tuple[ConversationId, Question], text: str) -> None:
    """Refuse a decision in the chat about work that has more than a chat may give it.

    That is work which reports elsewhere, was given sign-ins or connections, or has grants, also
    after a change.
    """
    asked_in, question = meant
    accept_answer(question, text)
    is_change = question.purpose is Purpose.CHANGE
    work_id = changed_work(question) if is_change else asked_in
    try:
        work = tx.conversations.load(user, work_id)
    except NotFound:
        return
    changed = from_data(question.binds_to["change"]).terms if is_change else None
    versions = [Terms.of(work), *([] if changed is None else [changed])]
    if TRUNCATION_MARK in question.prompt:
        raise Conflict(
            "This is too long to be decided in a chat.",
            hint="Look at the whole of it, and answer in the list of questions.",
        )
    reports = any(terms.reports_to for terms in versions)
    signs_in = any(is_given_sign_ins(terms.tools, work.uses) for terms in versions)
    connects = any(terms.connections for terms in versions)
    if reports or signs_in or connects or tx.grants.valid(user, work_id):
        raise Conflict(
            "Work that reports elsewhere, has sign-ins or connections, or may make calls unasked is"
            " not decided in a chat.",
            hint="Answer its question in the list of questions.",
        )


def _check_pending(conversation: Conversation, answers: QuestionId, text: str) -> None:
    """Refuse an answer to a question that a message here cannot answer."""
    question = conversation.pending_question
    if question is None or question.id != answers or question.purpose in CONSENT:
        raise Conflict(
            "A message here cannot answer this question.",
            hint="It may be answered already; look at the list of questions.",
        )
    accept_answer(question, text)


def _is_answer(conversation: Conversation, text: str) -> bool:
    question = conversation.pending_question
    return question is not None and match_chat_message(question, text) is not None


def _check_instructions(tx: Tx, by: Caller, conversation: Conversation) -> None:
    """Refuse a message that tells a task or a job more than its sender may; in chats they talk."""
    if conversation.kind is not Kind.CHAT:
        consent.check_instructions(tx, by, conversation)


def _decide(
    tx: Tx,
    deps: Deps,
    by: Caller,
    conversation_id: ConversationId,
    message_id: MessageId,
    text: str,
    meant: tuple[ConversationId, Question],
) -> Step:
    asked_in, question = meant
    user = by.user
    before = questions.lock(tx, user, asked_in, question.id)
    chat = tx.conversations.lock(user, conversation_id)
    said = NewMessage(role=MessageRole.USER, content=text, source=Source.CHAT, id=message_id)
    step = Step(conversation=replace(chat, unattended_replies=0), messages=(said,))
    tx.conversations.save(step)
    if asked_in == conversation_id:
        before = step.conversation
    questions.settle(tx, deps, before, question.id, text, by=by)
    if asked_in != conversation_id:
        verb = "Approved" if accept_answer(question, text) == YES else "Rejected"
        told = Step(
            conversation=tx.conversations.lock(user, conversation_id),
            messages=(system_message(f"{verb}: {before.title!r}.", own=True),),
        )
        tx.conversations.save(told)
    return step


def _sent_message(
    tx: Tx,
    step: Step,
    message_id: MessageId,
    text: str,
    attached: tuple[FileReference, ...] = (),
) -> SentMessage:
    message = Message(
        id=message_id,
        conversation_id=step.conversation.id,
        role=MessageRole.USER,
        content=text,
        source=Source.CHAT,
        created_at=tx.now,
        files=attached,
    )
    return SentMessage(message, frozenset(item.id for item in step.inbox))
