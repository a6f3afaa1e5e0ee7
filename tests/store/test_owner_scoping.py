"""A stranger who has only the ids finds nothing: every method of the store wants the owner as well.

The methods are found by their parameters, so a new one needs an entry here.
"""

import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property, partial
from importlib import import_module
from inspect import getmembers, isfunction
from itertools import groupby
from typing import Any, get_args, get_type_hints

import pytest
from sqlalchemy import Connection, Table, select, update
from sqlalchemy.exc import IntegrityError
from support.stage import make
from support.stage.make import NOON, STRANGER, USER
from support.stage.scene import LEASE, Scene, read_everything

from backburner import store
from backburner.core import ids, transitions
from backburner.core.accounts import CredentialKind, Scope
from backburner.core.allowance import Allowance, AllowanceScope, Amount, Cost
from backburner.core.channels.push import PushSubscription
from backburner.core.connections import connection
from backburner.core.connections.connection import ConnectionTool, ToolDefinition
from backburner.core.content.file import FileOrigin, FileReference, StoredFile
from backburner.core.conversation import Conversation, Destination
from backburner.core.errors import Conflict, Fenced, NotFound
from backburner.core.ids import GrantId, NoticeId, QuestionId, UserId
from backburner.core.notice import Notice, NoticeKind
from backburner.core.question import NO, Purpose
from backburner.core.routing import ProfileFilter
from backburner.core.run import (
    ItemKind,
    NewItem,
    RunEnding,
    RunKind,
    RunStatus,
    SkippedSlots,
    SkipReason,
    Turn,
)
from backburner.core.schedule import After, Gap, Immediate, Interval
from backburner.core.tool_policy import Grant, Tool, ToolCall
from backburner.core.transitions import Brief, Step
from backburner.core.transitions.step import system_message
from backburner.core.work.discovery import Presence
from backburner.core.work.folders import Folder
from backburner.core.work.summary import NewSummary
from backburner.core.work.views import WorkSummary
from backburner.ports import (
    CallEnd,
    Claim,
    ConversationFilter,
    ConversationPage,
    EventKind,
    NewCredential,
    NewMemory,
    ReadVersions,
    Reply,
    RunCounts,
    SpendingState,
    SpendTotal,
    StartedSignIn,
)
from backburner.store import tables
from backburner.store.context import Context, Group
from backburner.store.db import Database
from backburner.store.events import Events
from backburner.store.records import steps
from backburner.store.records.inbox import renew_request
from backburner.store.records.waits import Waits
from backburner.store.tx import Tx

#: What says whose something is.
OWNERS = (UserId, Turn, Conversation, Step, connection.Connection, PushSubscription)
IDS = tuple(kind for kind in vars(ids).values() if hasattr(kind, "__supertype__"))
REFUSALS = (NotFound, Fenced, Conflict, IntegrityError)

#: They make something of the caller's own, and look up nothing.
BIRTHS = {
    *("accounts.add", "connections.add", "conversations.add", "conversations.insert"),
    "push_subscriptions.put",
}


@dataclass(frozen=True)
class Home:
    """What a user has: conversations with everything in them."""

    held: Claim
    #: Held too, by somebody who has been asked to stop.
    stopping: Claim
    #: With a message, an item, a question, a grant, and a run that was handed back.
    kept: Conversation
    queued: Claim
    item: ids.ItemId
    #: With a run that was handed back until something happens, and parked.
    idle: Conversation
    #: Calls of the run that is held: one under way, and one that nobody knows about.
    call: ids.CallId
    doubtful: ids.CallId
    #: A message that was said, and a notice that was given.
    said: ids.MessageId
    told: NoticeId
    #: What looks for work.
    looks: Conversation
    #: A chat with a message that was answered, and the items that the message put into its inbox.
    chat: Conversation
    asked: ids.MessageId
    items: Sequence[ids.ItemId]
    #: A reply that is being given, with a draft; and a task whose only run has ended.
    replying: Claim
    ended: Conversation
    job: Conversation
    deleted: Conversation
    #: A token that has a place.
    token: str
    #: The number of a change.
    change: int


Attempt = Callable[[Tx, UserId, Home], object]

GRANT = Grant(id=GrantId("g_new"), server="s", tool="t", definition="d")
OLD_GRANT = replace(GRANT, id=GrantId("g_old"))
SINGLE_USE = replace(GRANT, id=GrantId("g_once"), call="digest")
FOLDER = Folder(path="/srv/app", machine="", machine_name="", read_only=False, created_at=NOON)
SERVER = connection.Connection(
    id=ids.ConnectionId("x_server"), user_id=USER, name="mail", title="Mail", created_at=NOON
)
SERVER_TOOL = ConnectionTool(definition=ToolDefinition(name="read"), digest="d", accepted="d")
CALL = ToolCall(Tool(server="s", name="t", definition="d", connection=SERVER.id), {})
STARTED = StartedSignIn(
    connection_id=SERVER.id, digest="digest", command="command", expires_at=NOON
)
FILE = StoredFile(
    digest="d1" * 32,
    size=4,
    media_type="text/plain",
    name="a.txt",
    origin=FileOrigin(make.OTHER),
    created_at=NOON,
)
WITH_FILE, REPLACED = ids.MessageId("m_with_file"), ids.MessageId("m_replaced")
OTHER_FILE = replace(FILE, digest="d2" * 32)
BROWSER = PushSubscription(
    id=ids.PushId("p_browser"),
    user_id=USER,
    session="",
    endpoint="https://push.example/send",
    receiver_key=b"key",
    auth=b"auth",
    server_key=b"server",
    label="phone",
    created_at=NOON,
)
MEMORY = NewMemory(key="key", text="text")
COST = Cost(Amount(1, 1), priced=True)
ALLOWANCE = Allowance(AllowanceScope.CONVERSATION, 1, 1)
EVENT = NewItem(kind=ItemKind.EVENT, run_kind=RunKind.BACKGROUND)
ANSWER = NewItem(kind=ItemKind.ANSWER, run_kind=RunKind.BACKGROUND)
SKIPPED = SkippedSlots(Gap(1, NOON, NOON), SkipReason.MISSED)
ABOUT_ALLOWANCE = make.question(
    id=QuestionId("q_allowance"), purpose=Purpose.ALLOWANCE, binds_to={"about": "all of it"}
)
REJECTED = make.question(id=QuestionId("q_rejected"), purpose=Purpose.PROPOSAL)
SAID = (system_message("Said."),)
TOLD = (Notice(NoticeKind.RESULT, "Told."),)
BEFORE = NOON - LEASE
TOKEN = CredentialKind.TOKEN
SUCCESS = RunEnding(status=RunStatus.SUCCESS)


def turn_of(me: UserId, home: Home) -> Turn:
    return replace(home.held.turn, user_id=me)


def hold_all(tx: Tx, turn: Turn) -> list[Conversation]:
    return [tx.turns.hold(held) for held in tx.turns.hold_all([turn])]


def begin_again(tx: Tx, me: UserId, home: Home) -> object:
    held = tx.turns.hold(home.held.turn)
    read = ReadVersions(tx.turns.version(home.held.turn) or "")
    begun = tx.tool_calls.begin_again(
        turn_of(me, home), ids.new_call_id(), CALL, read_only=False, read=read
    )
    # SQLite has no versions.
    return begun or (not read.conversation and me == held.user_id)


def held_by(me: UserId, home: Home) -> Step:
    return Step(conversation=replace(home.held.conversation, user_id=me))


def kept_by(me: UserId, home: Home) -> Conversation:
    return replace(home.kept, user_id=me, title="Changed")


def _earlier(tx: Tx, work: Callable[[UserId, ids.ConversationId], None]) -> Any:
    """Do something at a time before anything here was to happen."""
    tx.set_time(BEFORE, 0)
    return work


def _without(found: object, nothing: object) -> object:
    return None if found == nothing else found


def server_of(me: UserId) -> connection.Connection:
    return replace(SERVER, user_id=me, title="Changed")


ATTEMPTS: dict[str, Attempt] = {
    "push_subscriptions.find": lambda tx, me, _: tx.push_subscriptions.find(me, BROWSER.endpoint),
    "push_subscriptions.list": lambda tx, me, _: tx.push_subscriptions.list(me),
    "push_subscriptions.load": lambda tx, me, _: tx.push_subscriptions.load(me, BROWSER.id),
    "push_subscriptions.mark_failed": lambda tx, me, _: tx.push_subscriptions.mark_failed(
        me, BROWSER.id, "busy"
    ),
    "push_subscriptions.mark_sent": lambda tx, me, _: tx.push_subscriptions.mark_sent(
        me, BROWSER.id
    ),
    "push_subscriptions.remove": lambda tx, me, _: tx.push_subscriptions.remove(me, BROWSER.id),
    "push_subscriptions.remove_all": lambda tx, me, _: tx.push_subscriptions.remove_all(me),
    "push_subscriptions.remove_of_session": lambda tx, me, home: (
        tx.push_subscriptions.remove_of_session(me, home.token)
    ),
    "push_subscriptions.targets": lambda tx, me, _: tx.push_subscriptions.targets(me),
    "questions.open_with": lambda tx, me, _: tx.questions.open_with(me, Purpose.QUESTION),
    "runs.waiting_for_sign_in": lambda tx, me, _: tx.runs.waiting_for_sign_in(me),
    "connection_calls.count": lambda tx, me, _: tx.connection_calls.count(
        me, [SERVER.id], since=NOON
    ),
    "connection_calls.page": lambda tx, me, _: tx.connection_calls.page(me, limit=10),
    "connection_calls.record_unknown": lambda tx, me, home: tx.connection_calls.record_unknown(
        me, home.held.run.id
    ),
    "connections.find_offered": lambda tx, me, _: tx.connections.find_offered(
        me, SERVER.id, SERVER_TOOL.name, "d"
    ),
    "connections.find": lambda tx, me, _: tx.connections.find(me, SERVER.name),
    "connections.hold": lambda tx, me, _: tx.connections.hold(me, [SERVER.name]),
    "connections.list": lambda tx, me, _: tx.connections.list(me),
    "connections.load": lambda tx, me, _: tx.connections.load(me, SERVER.id),
    "connections.lock": lambda tx, me, _: tx.connections.lock(me, SERVER.id),
    "connections.named_in": lambda tx, me, _: tx.connections.named_in(me, SERVER.name),
    "connections.note_use": lambda tx, me, _: tx.connections.note_use(me, SERVER.id, at=NOON),
    "connections.put_tools": lambda tx, me, _: tx.connections.put_tools(
        me, SERVER.id, [replace(SERVER_TOOL, digest="new")]
    ),
    "connections.remove": lambda tx, me, _: tx.connections.remove(me, SERVER.id),
    "connections.remove_tools": lambda tx, me, _: tx.connections.remove_tools(
        me, SERVER.id, [SERVER_TOOL.name]
    ),
    "connections.save": lambda tx, me, _: tx.connections.save(server_of(me)),
    "started_sign_ins.find": lambda tx, me, _: tx.started_sign_ins.find(me, SERVER.id),
    "started_sign_ins.find_by_digest": lambda tx, me, _: tx.started_sign_ins.find_by_digest(
        me, STARTED.digest
    ),
    "started_sign_ins.mark_arrived": lambda tx, me, _: tx.started_sign_ins.mark_arrived(
        me, SERVER.id
    ),
    "started_sign_ins.put": lambda tx, me, _: tx.started_sign_ins.put(
        me, replace(STARTED, digest="other")
    ),
    "started_sign_ins.remove": lambda tx, me, _: tx.started_sign_ins.remove(me, SERVER.id),
    "token_leases.release": lambda tx, me, _: tx.token_leases.release(me, SERVER.id, "one"),
    "token_leases.take": lambda tx, me, _: tx.token_leases.take(
        me, SERVER.id, "one", lease=timedelta()
    ),
    "connections.size_of_others": lambda tx, me, _: tx.connections.size_of_others(
        me, ids.ConnectionId("x_other")
    ),
    "connections.tools": lambda tx, me, _: tx.connections.tools(me, SERVER.id),
    "connections.tools_of_all": lambda tx, me, _: tx.connections.tools_of_all(me),
    "secrets.find": lambda tx, me, _: tx.secrets.find("", owner=me),
    "secrets.forget": lambda tx, me, _: tx.secrets.forget(me),
    "secrets.hold_key": lambda tx, me, _: tx.secrets.hold_key(me),
    "secrets.load": lambda tx, me, _: tx.secrets.load(me, "mail"),
    "secrets.load_key": lambda tx, me, _: tx.secrets.load_key(me),
    "secrets.lock_key": lambda tx, me, _: tx.secrets.lock_key(me),
    "secrets.put_key": lambda tx, me, _: tx.secrets.put_key(me, b"other"),
    "secrets.remove": lambda tx, me, _: tx.secrets.remove(me, ""),
    "browse.titles": lambda tx, me, home: tx.browse.titles(me, [home.kept.id]),
    "browse.titles_in_folder": lambda tx, me, _: tx.browse.titles_in_folder(
        me, FOLDER.path, "", limit=9
    ),
    "browse.conversation": lambda tx, me, home: tx.browse.conversation(me, home.kept.id),
    "browse.conversations": lambda tx, me, _: _without(
        tx.browse.conversations(me, ConversationFilter(search="work"), None, limit=9),
        ConversationPage([], None),
    ),
    "browse.children": lambda tx, me, home: tx.browse.children(
        me, [parent for parent in [home.job.parent_id] if parent is not None], limit=9
    ),
    "browse.work_facts": lambda tx, me, home: tx.browse.work_facts(me, home.kept.id, limit=9),
    "browse.asked": lambda tx, me, home: tx.browse.asked(me, home.kept.id, None, limit=9),
    "browse.runs_with_ids": lambda tx, me, home: tx.browse.runs_with_ids(
        me, home.held.conversation.id, [home.held.run.id]
    ),
    "browse.run_details": lambda tx, me, home: tx.browse.run_details(me, [home.held.run.id]),
    "browse.matches": lambda tx, me, home: tx.browse.matches(me, ["hello"], [home.chat.id]),
    "browse.hits": lambda tx, me, home: tx.browse.hits(me, ["hello"], {home.chat.id: ""}),
    "browse.list_facts": lambda tx, me, home: tx.browse.list_facts(me, [home.kept.id]),
    "browse.activities": lambda tx, me, home: tx.browse.activities(me, [home.held.conversation.id]),
    "browse.runs_by_status": lambda tx, me, _: tx.browse.runs_by_status(
        me, RunStatus.RUNNING, None, limit=9
    ),
    "browse.count_running": lambda tx, me, _: tx.browse.count_running(me),
    "browse.call_summaries": lambda tx, me, home: tx.browse.call_summaries(
        me, home.held.run.id, None, limit=9
    ),
    "browse.call": lambda tx, me, home: tx.browse.call(me, home.held.run.id, home.call),
    "browse.calls": lambda tx, me, home: tx.browse.calls(me, home.held.run.id),
    "browse.question": lambda tx, me, _: tx.browse.question(me, make.QUESTION),
    "browse.messages": lambda tx, me, home: tx.browse.messages(me, home.kept.id, None, limit=9),
    "browse.count_unseen_notices": lambda tx, me, _: tx.browse.count_unseen_notices(me, limit=9),
    "browse.notices": lambda tx, me, _: tx.browse.notices(me, None, unseen=False, limit=9),
    "browse.questions": lambda tx, me, _: tx.browse.questions(me, None, limit=9),
    "browse.runs": lambda tx, me, home: tx.browse.runs(me, home.kept.id, None, limit=9),
    "browse.run_parts": lambda tx, me, home: tx.browse.run_parts(me, [home.queued.run.id]),
    "browse.prompts": lambda tx, me, home: tx.browse.prompts(me, home.queued.run.id, limit=9),
    "browse.model_calls": lambda tx, me, home: tx.browse.model_calls(me, home.held.run.id, limit=9),
    "browse.run_costs": lambda tx, me, home: tx.browse.run_costs(me, [home.held.run.id]),
    "browse.run_totals": lambda tx, me, home: tx.browse.run_totals(me, [home.held.run.id]),
    "browse.awaited_jobs": lambda tx, me, home: tx.browse.awaited_jobs(me, [home.queued.run.id]),
    "browse.asked_by": lambda tx, me, home: tx.browse.asked_by(
        me, replace(home.queued.run, id=make.RUN), limit=9
    ),
    "browse.earlier_runs": lambda tx, me, home: tx.browse.earlier_runs(
        me, replace(home.queued.run, id=make.RUN), limit=9
    ),
    "browse.later_runs": lambda tx, me, home: tx.browse.later_runs(
        me, replace(home.queued.run, started_at=BEFORE), limit=9
    ),
    "browse.last_runs": lambda tx, me, home: tx.browse.last_runs(me, home.kept.id, limit=9),
    "browse.require": lambda tx, me, home: tx.browse.require(me, home.kept.id),
    "turns.commit": lambda tx, me, home: tx.turns.commit(
        turn_of(me, home), held_by(me, home), SUCCESS
    ),
    "turns.hand_back": lambda tx, me, home: tx.turns.hand_back(
        turn_of(me, home), held_by(me, home), until=None
    ),
    "turns.hold": lambda tx, me, home: tx.turns.hold(turn_of(me, home)),
    "turns.version": lambda tx, me, home: (
        tx.turns.hold(turn_of(me, home)),
        tx.turns.version(turn_of(me, home)),
    ),
    "turns.hold_all": lambda tx, me, home: hold_all(tx, turn_of(me, home)),
    "turns.is_cancelled": lambda tx, me, home: tx.turns.is_cancelled(
        replace(home.stopping.turn, user_id=me)
    ),
    "turns.is_committed": lambda tx, me, home: tx.turns.is_committed(
        replace(home.queued.turn, user_id=me)
    ),
    "turns.mark_outside_text": lambda tx, me, home: tx.turns.mark_outside_text(turn_of(me, home)),
    "turns.renew": lambda tx, me, home: tx.turns.renew([turn_of(me, home)], lease=LEASE),
    "inbox.renew_request": lambda tx, me, home: (
        renew_request(tx, kept_by(me, home), RunKind.REPLY).reply_profile
    ),
    "conversations.children": lambda tx, me, home: tx.conversations.children(me, home.kept.id),
    "conversations.followers": lambda tx, me, home: tx.conversations.followers(me, home.kept.id),
    "conversations.load": lambda tx, me, home: tx.conversations.load(me, home.kept.id),
    "conversations.lock": lambda tx, me, home: tx.conversations.lock(me, home.kept.id),
    "conversations.open_children": lambda tx, me, home: tx.conversations.open_children(
        me, home.kept.id
    ),
    "conversations.paused_for_allowance": lambda tx, me, _: tx.conversations.paused_for_allowance(
        me
    ),
    "conversations.delete": lambda tx, me, home: tx.conversations.delete(me, home.kept.id),
    "conversations.update": lambda tx, me, home: tx.conversations.update(kept_by(me, home)),
    "files.find": lambda tx, me, home: tx.files.find(me, FILE.digest[:16], home.kept.id),
    "files.forget_conversation": lambda tx, me, home: tx.files.forget_conversation(
        me, home.kept.id
    ),
    "files.forget_messages": lambda tx, me, home: tx.files.forget_messages(
        me, home.kept.id, [WITH_FILE]
    ),
    "files.load": lambda tx, me, _: tx.files.load(me, FILE.digest),
    "files.page": lambda tx, me, _: tx.files.page(me, None, limit=9),
    "files.piece": lambda tx, me, _: tx.files.piece(me, FILE.digest, 0),
    "files.remove": lambda tx, me, _: tx.files.remove(me, FILE.digest),
    "files.remove_all": lambda tx, me, _: tx.files.remove_all(me),
    "files.sweep": lambda tx, me, _: tx.files.sweep(before=NOON + LEASE, user=me),
    "files.total_size": lambda tx, me, _: tx.files.total_size(me),
    "files.use": lambda tx, me, home: tx.files.use(
        me, FILE.digest, conversation_id=home.kept.id, used_by=ids.new_call_id()
    ),
    "files.write": lambda tx, me, _: tx.files.write(me, FILE.digest, 7, b"more"),
    "folders.find": lambda tx, me, _: tx.folders.find(me, FOLDER.path, FOLDER.machine),
    "folders.holders": lambda tx, me, _: tx.folders.holders(me),
    "folders.list": lambda tx, me, _: tx.folders.list(me),
    "folders.mark_reported": lambda tx, me, _: tx.folders.mark_reported(
        me, FOLDER.for_work, "digest"
    ),
    "folders.remove": lambda tx, me, _: tx.folders.remove(me, FOLDER.path, FOLDER.machine),
    "grants.give": lambda tx, me, home: tx.grants.give(me, home.kept.id, [GRANT]),
    "grants.end_all": lambda tx, me, home: tx.grants.end_all(me, home.kept.id),
    "grants.end_unused": lambda tx, me, home: tx.grants.end_unused(me, home.kept.id),
    "grants.given": lambda tx, me, home: tx.grants.given(me, home.kept.id),
    "browse.grant": lambda tx, me, _: tx.browse.grant(me, OLD_GRANT.id),
    "browse.all_grants": lambda tx, me, _: tx.browse.all_grants(me, None, limit=9),
    "grants.revoke": lambda tx, me, _: tx.grants.revoke(me, OLD_GRANT.id),
    "grants.use": lambda tx, me, home: tx.grants.use(me, home.kept.id, SINGLE_USE.id),
    "grants.valid": lambda tx, me, home: tx.grants.valid(me, home.kept.id),
    "inbox.pending_answers": lambda tx, me, home: tx.inbox.pending_answers(me, home.kept.id),
    "inbox.put": lambda tx, me, home: tx.inbox.put(
        me, home.kept.id, [replace(EVENT, id=ids.new_item_id())]
    ),
    "inbox.serve": lambda tx, me, home: tx.inbox.serve(me, [home.item], run_id=home.held.run.id),
    "inbox.served_by": lambda tx, me, home: tx.inbox.served_by(
        me, home.kept.id, home.queued.run.id
    ),
    "inbox.settle": lambda tx, me, home: tx.inbox.settle(me, home.kept.id, kind=None),
    "inbox.take_back": lambda tx, me, home: tx.inbox.take_back(
        me, home.kept.id, home.queued.run.id
    ),
    "inbox.waiting": lambda tx, me, home: tx.inbox.waiting(me, home.kept.id, RunKind.REPLY),
    "tool_calls.begin": lambda tx, me, home: tx.tool_calls.begin(
        turn_of(me, home), ids.new_call_id(), CALL, read_only=False
    ),
    "tool_calls.begin_again": begin_again,
    "tool_calls.end": lambda tx, me, home: tx.tool_calls.end(
        turn_of(me, home), CallEnd(home.call, "Done.")
    ),
    "tool_calls.take_in_doubt": lambda tx, me, home: tx.tool_calls.take_in_doubt(turn_of(me, home)),
    "tool_calls.has_begun": lambda tx, me, home: tx.tool_calls.has_begun(
        turn_of(me, home), home.call
    ),
    "tool_calls.of_run": lambda tx, me, home: tx.tool_calls.of_run(me, home.held.run.id),
    "tool_calls.undo": lambda tx, me, home: tx.tool_calls.undo(me, [home.call], "Undone."),
    "tool_calls.settle": lambda tx, me, home: tx.tool_calls.settle(
        me, home.doubtful, "It happened."
    ),
    "discovery.conversation_ids": lambda tx, me, _: tx.discovery.conversation_ids(me),
    "discovery.pass_over": lambda tx, me, home: tx.discovery.pass_over(
        replace(home.looks, user_id=me, next_run_at=None)
    ),
    "discovery.presence": lambda tx, me, _: _without(
        tx.discovery.presence(me), Presence(last_message_at=None, awaits_reply=False)
    ),
    "discovery.recent_snippets": lambda tx, me, _: tx.discovery.recent_snippets(me, limit=9),
    "memories.count": lambda tx, me, _: tx.memories.count(me),
    "browse.memory": lambda tx, me, _: tx.browse.memory(me, "key"),
    "browse.memories": lambda tx, me, _: tx.browse.memories(me, None, limit=9),
    "memories.recall": lambda tx, me, _: tx.memories.recall(me, ["text"], limit=9),
    "memories.remove": lambda tx, me, _: tx.memories.remove(me, "key"),
    "memories.search": lambda tx, me, _: tx.memories.search(me, ["text"], limit=9),
    "marks.count_pinned": lambda tx, me, _: tx.marks.count_pinned(me),
    "marks.pin": lambda tx, me, home: tx.marks.pin(
        tx.conversations.lock(me, home.kept.id), pinned=True
    ),
    "marks.hide": lambda tx, me, home: tx.marks.hide(
        tx.conversations.lock(me, home.kept.id), root=home.kept.id
    ),
    "marks.is_deleted": lambda tx, me, home: tx.marks.is_deleted(me, home.deleted.id),
    "marks.lock_deleted": lambda tx, me, home: tx.marks.lock_deleted(me, home.deleted.id),
    "marks.show": lambda tx, me, home: tx.marks.show(me, home.deleted.id),
    "marks.see": lambda tx, me, home: tx.marks.see(tx.conversations.lock(me, home.kept.id)),
    "messages.append": lambda tx, me, home: tx.messages.append(me, home.kept.id, SAID, run_id=None),
    "messages.detach_replaced": lambda tx, me, home: tx.messages.detach_replaced(me, home.kept.id),
    "messages.files_of": lambda tx, me, home: tx.messages.files_of(me, home.kept.id, limit=9),
    "messages.recent": lambda tx, me, home: tx.messages.recent(me, home.kept.id, limit=9),
    "messages.recent_of_each": lambda tx, me, home: [
        message
        for messages in tx.messages.recent_of_each(
            [kept_by(me, home), held_by(me, home).conversation], limit=9
        ).values()
        for message in messages
    ],
    "messages.last_of_user": lambda tx, me, home: tx.messages.last_of_user(me, home.kept.id),
    "messages.remove_last": lambda tx, me, home: tx.messages.remove_last(me, home.kept.id),
    "notices.put": lambda tx, me, home: tx.notices.put(
        kept_by(me, home), TOLD, cause="new", run_id=None
    ),
    "notices.mark_seen": lambda tx, me, home: tx.notices.mark_seen(me, [home.told]),
    "notices.mark_seen_in": lambda tx, me, home: tx.notices.mark_seen_in(
        me, home.kept.id, until=NOON
    ),
    "notices.mark_question_seen": lambda tx, me, home: tx.notices.mark_question_seen(
        me, home.kept.id, make.QUESTION
    ),
    "notices.mark_seen_until": lambda tx, me, home: tx.notices.mark_seen_until(me, home.told),
    "questions.open_around": lambda tx, me, home: tx.questions.open_around(me, home.kept.id),
    "questions.open_allowances": lambda tx, me, _: tx.questions.open_allowances(me),
    "questions.close": lambda tx, me, _: tx.questions.close(me, make.QUESTION, "yes"),
    "questions.keep_answerer": lambda tx, me, _: tx.questions.keep_answerer(
        me, make.QUESTION, "token"
    ),
    "questions.conversation_of": lambda tx, me, _: tx.questions.conversation_of(me, make.QUESTION),
    "questions.open_of": lambda tx, me, home: tx.questions.open_of(me, home.kept.id),
    "questions.unapproved_proposal": lambda tx, me, home: tx.questions.unapproved_proposal(
        me, home.kept.id
    ),
    "questions.purposes": lambda tx, me, _: tx.questions.purposes(me, [make.QUESTION]),
    "questions.open_of_all": lambda tx, me, home: tx.questions.open_of_all(me, [home.kept.id]),
    "questions.put": lambda tx, me, home: tx.questions.put(
        me, home.kept.id, [make.question(id=QuestionId("q_new"))]
    ),
    "questions.snooze": lambda tx, me, _: tx.questions.snooze(me, make.question(reminders=7)),
    "questions.exists": lambda tx, me, _: tx.questions.exists(me, make.QUESTION),
    "runs.request_stop": lambda tx, me, home: tx.runs.request_stop(
        me, home.held.conversation.id, kind=None
    ),
    "runs.save_draft": lambda tx, me, home: tx.runs.save_draft(turn_of(me, home), "So far."),
    "runs.save_progress": lambda tx, me, home: tx.runs.save_progress(turn_of(me, home), "Half."),
    "runs.progress_of": lambda tx, me, home: tx.runs.progress_of(
        me, [home.held.turn.conversation_id]
    ),
    "runs.drop_queued": lambda tx, me, home: tx.runs.drop_queued(me, home.kept.id, kind=None),
    "runs.end": lambda tx, me, home: tx.runs.end(me, home.held.run.id, SUCCESS),
    "runs.resume": lambda tx, me, home: tx.runs.resume(
        me, home.queued.run.id, epoch=9, unattended=True, worker="another"
    ),
    "runs.replies_since": lambda tx, me, home: tx.runs.replies_since(
        me, home.chat.id, [run.id for run in tx.runs.history(USER, home.chat.id, limit=9)], NOON
    ),
    "runs.history": lambda tx, me, home: tx.runs.history(me, home.kept.id, limit=9),
    "runs.is_proven": lambda tx, me, home: tx.runs.is_proven(
        me, home.queued.run.id, home.queued.turn.epoch
    ),
    "runs.load": lambda tx, me, home: tx.runs.load(me, home.held.run.id),
    "runs.prove": lambda tx, me, home: tx.runs.prove(replace(turn_of(me, home), epoch=99)),
    "runs.queue": lambda tx, me, home: tx.runs.queue(me, home.held.run.id, until=None),
    "runs.queued": lambda tx, me, home: tx.runs.queued(me, home.kept.id),
    "runs.skip": lambda tx, me, home: tx.runs.skip(me, home.kept.id, [SKIPPED], revision=1),
    "runs.resume_waiting": lambda tx, me, home: tx.runs.resume_waiting(me, home.idle.id, at=NOON),
    "sessions.append": lambda tx, me, home: tx.sessions.append(turn_of(me, home), "s", ["new"]),
    "sessions.delete": lambda tx, me, home: tx.sessions.delete(me, home.held.conversation.id, "s"),
    "sessions.has_entries": lambda tx, me, home: tx.sessions.has_entries(
        replace(home.queued.turn, user_id=me)
    ),
    "sessions.load": lambda tx, me, home: tx.sessions.load(turn_of(me, home), "s"),
    "summaries.delete": lambda tx, me, home: tx.summaries.delete(me, home.held.conversation.id),
    "summaries.load": lambda tx, me, home: tx.summaries.load(me, home.held.conversation.id),
    "summaries.put": lambda tx, me, home: tx.summaries.put(
        me, home.held.conversation.id, NewSummary(session_id="s", text="New."), outside=True
    ),
    "spending.state": lambda tx, me, home: _without(
        tx.spending.state(me, home.kept.id, ["user"]), SpendingState({}, [], [], [])
    ),
    "spending.states": lambda tx, me, home: _without(
        tx.spending.states({me: (home.kept.id, ["user"])})[me], SpendingState({}, [], [], [])
    ),
    "spending.was_recorded": lambda tx, me, home: tx.spending.was_recorded(turn_of(me, home), NOON),
    "spending.top": lambda tx, me, _: tx.spending.top(me, searched=99, limit=9),
    "spending.reset_allowance": lambda tx, me, _: tx.spending.reset_allowance(
        me, AllowanceScope.DAY
    ),
    "conversations.save": lambda tx, me, home: tx.conversations.save(
        Step(conversation=kept_by(me, home), messages=SAID), cause="new"
    ),
    "steps.write": lambda tx, me, home: steps.write(
        tx, Step(conversation=kept_by(me, home), messages=SAID), cause="new"
    ),
    "away.bars": lambda tx, me, _: tx.away.bars(me, BEFORE, limit=9),
    "away.active_bars": lambda tx, me, _: tx.away.active_bars(me, limit=9),
    "away.asked": lambda tx, me, home: tx.away.asked(me, [home.kept.id], BEFORE, limit=9),
    "away.pending_questions": lambda tx, me, _: tx.away.pending_questions(me, limit=9),
    "away.runs_by_conversation": lambda tx, me, _: tx.away.runs_by_conversation(
        me, BEFORE, limit=9
    ),
    "away.reports": lambda tx, me, home: tx.away.reports(me, [home.ended.id], BEFORE),
    "away.spent": lambda tx, me, _: _without(
        tx.away.spent(me, BEFORE), SpendTotal(Amount(0, 0), is_all_priced=True)
    ),
    "away.recent_notices": lambda tx, me, _: tx.away.recent_notices(me, BEFORE, limit=9),
    "away.totals": lambda tx, me, _: _without(tx.away.totals(me, BEFORE), RunCounts()),
    "grants.end_of_server": lambda tx, me, _: tx.grants.end_of_server(me, "s"),
    "browse.grants": lambda tx, me, home: tx.browse.grants(me, home.kept.id),
    "credentials.find": lambda tx, me, home: tx.credentials.find(me, home.token, now=NOON),
    "credentials.page": lambda tx, me, _: tx.credentials.page(me, TOKEN, limit=9, now=NOON),
    "credentials.revoke": lambda tx, me, home: tx.credentials.revoke(
        me, home.token, TOKEN, now=NOON
    ),
    "credentials.revoke_named": lambda tx, me, _: tx.credentials.revoke_named(
        me, "token", kept_id="", now=NOON
    ),
    "credentials.revoke_all": lambda tx, me, _: tx.credentials.revoke_all(me, [TOKEN], now=NOON),
    "credentials.valid": lambda tx, me, home: tx.credentials.valid([(me, home.token)], now=NOON),
    "events.after": lambda tx, me, _: tx.events.after(me, 0, limit=9),
    "events.drafts": lambda tx, me, _: tx.events.drafts(me, None),
    "events.has_all_since": lambda tx, me, home: tx.events.has_all_since(me, home.change),
    "events.latest": lambda tx, me, _: tx.events.latest(me),
    "jobs.waiting_kind": lambda tx, me, home: tx.jobs.waiting_kind(me, home.kept.id, make.OTHER),
    "jobs.count_open": lambda tx, me, home: tx.jobs.count_open(me, home.kept.id),
    "jobs.has_session": lambda tx, me, home: tx.jobs.has_session(
        me, home.held.conversation.id, "s"
    ),
    "jobs.parents": lambda tx, me, _: tx.jobs.parents(me, searched=9, limit=9),
    "jobs.level": lambda tx, me, home: tx.jobs.level(me, [home.kept.id], each=9, limit=9).jobs,
    "jobs.costs": lambda tx, me, home: tx.jobs.costs(me, [home.held.conversation.id]),
    "jobs.lock": lambda tx, me, home: tx.jobs.lock(me, [home.job.id]),
    "outages.longest_waiting": lambda tx, me, _: tx.outages.longest_waiting(
        me, ProfileFilter(("",)), before=tx.now + timedelta(days=999)
    ),
    "jobs.load": lambda tx, me, home: tx.jobs.load(me, [home.job.id]),
    "jobs.redirect": lambda tx, me, home: tx.jobs.redirect(me, [home.item], RunKind.BACKGROUND),
    "jobs.mark_retrieved": lambda tx, me, home: tx.jobs.mark_retrieved(me, [home.job.id]),
    "jobs.started_by": lambda tx, me, home: tx.jobs.started_by(me, home.kept.id, limit=9),
    "jobs.wait": lambda tx, me, home: tx.jobs.wait(turn_of(me, home), {make.OTHER: False}),
    "jobs.work_summaries": lambda tx, me, home: _without(
        tx.jobs.work_summaries(me, [home.held.conversation.id]),
        {home.held.conversation.id: WorkSummary()},
    ),
    "mcp_clients.former_conversation_of": lambda tx, me, _: tx.mcp_clients.former_conversation_of(
        me, "former", now=NOON
    ),
    "mcp_clients.remember_conversation": lambda tx, me, home: tx.mcp_clients.remember_conversation(
        me, home.token, home.chat.id
    ),
    "mcp_clients.name_of": lambda tx, me, home: tx.mcp_clients.name_of(me, home.token),
    "mcp_clients.conversation_of": lambda tx, me, home: tx.mcp_clients.conversation_of(
        me, home.token
    ),
    "personal_data.page": lambda tx, me, _: (
        tx.personal_data.page(me, "conversations", None, limit=9).rows
    ),
    "replies.find": lambda tx, me, home: _without(
        tx.replies.find(me, home.chat.id, home.asked, home.items), Reply(None, ())
    ),
    "replies.message": lambda tx, me, home: tx.replies.message(me, home.chat.id, home.asked),
    "runs.stop_work": lambda tx, me, home: tx.runs.stop_work(me, home.held.turn.conversation_id),
    "runs.stop_reply": lambda tx, me, home: tx.runs.stop_reply(me, home.replying.conversation.id),
    "stored_responses.complete": lambda tx, me, _: tx.stored_responses.complete(
        me, "key", 200, "{}"
    ),
    "stored_responses.release": lambda tx, me, _: tx.stored_responses.release(me, "key"),
    "tasks.active": lambda tx, me, _: tx.tasks.active(me),
    "tasks.by_title_or_id": lambda tx, me, _: tx.tasks.by_title_or_id(me, "Work", limit=9),
    "tasks.recent_costs": lambda tx, me, home: tx.tasks.recent_costs(me, home.ended.id, limit=9),
    "tasks.recent_costs_by_profile": lambda tx, me, _: tx.tasks.recent_costs_by_profile(
        me, "profile", since=BEFORE, limit=9
    ),
    "tasks.count_proposed": lambda tx, me, home: tx.tasks.count_proposed(
        me, home.kept.id, since=BEFORE
    ),
    "tasks.rejected_proposals": lambda tx, me, _: tx.tasks.rejected_proposals(me, since=BEFORE),
    "tasks.planned": lambda tx, me, _: tx.tasks.planned(me, limit=9),
    "tasks.scheduled": lambda tx, me, _: tx.tasks.scheduled(me, limit=9),
    "waits.awaited_by": lambda tx, me, home: Waits(tx).awaited_by(me, home.kept.id, make.OTHER),
    "waits.begin": lambda tx, me, home: Waits(tx).begin(turn_of(me, home), {make.OTHER: False}),
    "waits.resume": lambda tx, me, home: _earlier(tx, Waits(tx).resume)(me, home.kept.id),
    "waits.settle": lambda tx, me, _: Waits(tx).settle(me, make.OTHER),
    "waits.take": lambda tx, me, home: Waits(tx).take(me, home.queued.run.id),
}


#: They write down what is the caller's own affair, whatever ids it names.
OF_THEIR_OWN: dict[str, Attempt] = {
    "credentials.issue": lambda tx, me, _: tx.credentials.issue(
        me, f"digest of {me}", NewCredential(TOKEN, Scope), now=NOON
    ),
    "events.note": lambda tx, me, home: tx.events.note(me, home.kept.id, EventKind.RUN),
    "events.note_step": lambda tx, me, home: tx.events.note_step(held_by(me, home)),
    "stored_responses.reserve": lambda tx, me, _: tx.stored_responses.reserve(
        me, "key", "request", now=NOON
    ),
    "files.begin": lambda tx, me, _: tx.files.begin(me, OTHER_FILE),
    "folders.put": lambda tx, me, _: tx.folders.put(me, FOLDER),
    "memories.put": lambda tx, me, _: tx.memories.put(me, MEMORY),
    "secrets.add": lambda tx, me, _: tx.secrets.add(me, f"of {me}", b"sealed"),
    "secrets.add_key": lambda tx, me, _: tx.secrets.add_key(me, b"wrapped"),
    "secrets.put": lambda tx, me, _: tx.secrets.put(me, "mail", b"sealed"),
    "spending.add": lambda tx, me, home: tx.spending.add(
        turn_of(me, home),
        home.kept.id,
        "model",
        COST,
        counts_to=["user", f"run:{home.held.run.id}", f"conversation:{home.kept.id}"],
    ),
    "spending.set_allowance": lambda tx, me, home: tx.spending.set_allowance(
        me, ALLOWANCE, home.kept.id
    ),
}
#: They are about a user as such: whoever calls them has made sure that it is the caller.
OF_A_USER = {
    *("audit.of_user", "audit.record"),
    # A sender serves all users, and passes over those that it names.
    "deliveries.lease",
    *(
        "accounts.change",
        "accounts.disable",
        "accounts.known",
        "accounts.load",
        "accounts.password_hash",
    ),
    *(
        "accounts.set_password",
        "away.mark_seen",
        "away.since",
        "browse.profile",
        "personal_data.erase",
    ),
    *(
        "personal_data.is_last_operator",
        "personal_data.profile",
        "personal_data.stop_runs",
        "users.load",
    ),
    *("users.lock", "users.pause_everything", "users.set_paused", "users.set_zone"),
    *("users.zones", "spending.set_ceiling", "spending.reset_ceiling"),
}


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield every public method of a group, and every function of a transaction."""
    for name, group in groups().items():
        for method, value in getmembers(group, isfunction):
            if not method.startswith("_"):
                yield f"{name}.{method}", value
    for found in pkgutil.walk_packages(store.__path__, f"{store.__name__}."):
        if ".migrations" in found.name:
            continue
        module = import_module(found.name)
        for name, value in vars(module).items():
            is_own = isfunction(value) and value.__module__ == module.__name__
            if is_own and not name.startswith("_") and takes(value, (Connection, Context)):
                yield f"{found.name.rpartition('.')[2]}.{name}", value


def groups() -> dict[str, type]:
    """Find every group by its name in a transaction; one that is not there by its class."""
    face = {
        value.func: name for name, value in vars(Tx).items() if isinstance(value, cached_property)
    }
    found = {face.get(one, one.__name__.lower()): one for one in _leaves(Group)}
    return {**found, "events": Events}


def _leaves(group: type) -> Iterator[type]:
    below: list[type] = group.__subclasses__()
    for one in below:
        yield from _leaves(one)
    if not below:
        yield group


def takes(function: Callable[..., Any], kinds: tuple[Any, ...]) -> bool:
    """See whether any of these is among what a function takes, also inside of something else."""
    hints = get_type_hints(function)
    hints.pop("return", None)
    return any(_is_among(hint, kinds) for hint in hints.values())


def _is_among(hint: Any, kinds: tuple[Any, ...]) -> bool:
    return hint in kinds or any(_is_among(part, kinds) for part in get_args(hint))


def furnish(scene: Scene) -> Home:
    """Let the user have everything there is, and the stranger be there."""
    scene.user(STRANGER)
    chat, asked, items = _answered_chat(scene)
    scene.say(scene.chat())
    replying = scene.begin_reply()
    scene.run(lambda tx: tx.runs.save_draft(replying.turn, "So far."))
    ended = _begin(scene)
    scene.finish(ended)
    scene.run(lambda tx: tx.connection.execute(update(tables.runs).values(profile="profile")))
    idle = _begin(scene)
    scene.hand_back(idle, after=None)
    waits_for = update(tables.runs).where(tables.runs.c.id == idle.run.id)
    scene.run(lambda tx: tx.connection.execute(waits_for.values(connection_id=SERVER.id)))
    scene.change(idle.conversation, transitions.pause_for_allowance)
    kept, queued = _queued_task(scene)
    held, stopping = _begin(scene, folder=FOLDER.for_work), _begin(scene)
    scene.run(lambda tx: tx.sessions.append(held.turn, "s", ["entry"]))
    scene.run(lambda tx: tx.runs.save_progress(held.turn, "A part of it."))
    summary = NewSummary(session_id="s", text="Old.")
    here = (held.turn.user_id, held.turn.conversation_id)
    scene.run(lambda tx: tx.summaries.put(*here, summary, outside=False))
    scene.change(stopping.conversation, lambda found: transitions.cancel(found, now=NOON))
    call, doubtful = _made_calls(scene, held)
    (item,) = scene.waiting(kept, RunKind.REPLY)
    kept = scene.load(kept)
    scene.run(lambda tx: tx.notices.put(kept, TOLD, cause="old", run_id=None))
    scene.run(
        lambda tx: tx.spending.set_allowance(USER, Allowance(AllowanceScope.DAY, 1, 1), kept.id)
    )
    home = Home(
        *(held, stopping, kept, queued, item.id, idle.conversation, call, doubtful),
        *(_only_id(scene, tables.messages), _only_id(scene, tables.notices)),
        scene.discovery(every=LEASE),
        chat=chat,
        asked=asked,
        items=items,
        replying=replying,
        ended=ended.conversation,
        job=_job(scene, kept),
        deleted=_deleted(scene),
        token=scene.run(partial(_tokens, kept)),
        change=scene.run(lambda tx: tx.events.latest(USER)),
    )
    _dismiss(scene, kept)
    scene.run(lambda tx: tx.marks.pin(tx.conversations.lock(USER, chat.id), pinned=True))
    scene.say(scene.chat())
    scene.run(lambda tx: tx.connections.add(SERVER))
    scene.change(kept, lambda found: Step(conversation=replace(found, connections=(SERVER.name,))))
    browser = replace(BROWSER, session=home.token)
    scene.run(lambda tx: tx.push_subscriptions.put(browser))
    scene.run(lambda tx: tx.started_sign_ins.put(USER, STARTED))
    scene.run(lambda tx: tx.token_leases.take(USER, SERVER.id, "one", lease=timedelta()))
    scene.run(partial(_store_file, kept))
    scene.run(lambda tx: tx.connections.put_tools(USER, SERVER.id, [SERVER_TOOL]))
    scene.run(lambda tx: tx.secrets.add_key(USER, b"wrapped"))
    scene.run(lambda tx: tx.secrets.put(USER, "mail", b"sealed"))
    for attempt in OF_THEIR_OWN.values():
        scene.run(_for_user(attempt, home))
    return home


def _queued_task(scene: Scene) -> tuple[Conversation, Claim]:
    """Make a task with questions, grants, a message and a successor, whose run waits for a job."""
    task = scene.task(
        Interval(LEASE, anchor=NOON), reports_to=(Destination("discord", "somebody"),)
    )
    queued = scene.begin_work()
    scene.run(lambda tx: tx.inbox.put(USER, task.id, [EVENT, ANSWER]))
    scene.run(lambda tx: tx.sessions.append(queued.turn, "s", ["entry"]))
    scene.hand_back(queued, served=scene.items(queued))
    scene.run(lambda tx: Waits(tx).begin(queued.turn, {make.OTHER: False}))
    scene.change(task, lambda found: transitions.ask_owner(found, make.question()))
    scene.change(task, lambda found: transitions.ask_owner(found, ABOUT_ALLOWANCE))
    scene.change(task, lambda found: transitions.ask_owner(found, REJECTED))
    scene.run(lambda tx: tx.questions.close(USER, REJECTED.id, "no"))
    scene.change(task, lambda found: Step(conversation=found, grants=(OLD_GRANT, SINGLE_USE)))
    scene.say(task, profile="profile")
    scene.task(After(task.id), parent_id=task.id)
    return task, queued


def _answered_chat(scene: Scene) -> tuple[Conversation, ids.MessageId, Sequence[ids.ItemId]]:
    chat = scene.chat()
    scene.say(chat)
    reply = scene.begin_reply()
    items = scene.items(reply)
    scene.finish(reply, "Well.", served=items)
    (asked, _) = scene.run(lambda tx: tx.messages.recent(USER, chat.id, limit=2))
    return chat, asked.id, [item.id for item in items]


def _job(scene: Scene, parent: Conversation) -> Conversation:
    below = parent.id
    brief = Brief(
        title="Job", prompt="Do it.", schedule=Immediate(), parent_id=below, root_id=below
    )
    return scene.add(transitions.start_job(ids.new_conversation_id(), USER, brief, now=NOON))


def _deleted(scene: Scene) -> Conversation:
    chat = scene.chat()
    scene.run(lambda tx: tx.marks.hide(tx.conversations.lock(USER, chat.id), root=chat.id))
    return chat


def _tokens(place: Conversation, tx: Tx) -> str:
    """Have a token that has a place, and one that had it before."""
    former, token = (
        tx.credentials.issue(USER, name, NewCredential(TOKEN, Scope, name=name), now=NOON)
        for name in ("former", "token")
    )
    for one in (former, token):
        tx.mcp_clients.remember_conversation(USER, one, place.id)
    tx.credentials.revoke(USER, former, TOKEN, now=NOON)
    return token


def _dismiss(scene: Scene, parent: Conversation) -> None:
    """Let something be proposed in a conversation, and dismissed."""
    brief = Brief(title="Idea", prompt="Do it.", schedule=Immediate(), parent_id=parent.id)
    made = transitions.propose(ids.new_conversation_id(), USER, brief, why="", now=NOON)
    asked = scene.add(made).questions[0].id
    scene.change(made.conversation, lambda one: transitions.answer(one, asked, NO, now=NOON))


def _store_file(place: Conversation, tx: Tx) -> None:
    tx.files.begin(USER, FILE)
    tx.files.write(USER, FILE.digest, 0, b"data")
    tx.files.use(USER, FILE.digest, conversation_id=place.id, used_by=ids.new_call_id())
    named = FileReference(digest=FILE.digest, size=4, media_type="text/plain", name="a.txt")
    said = [replace(SAID[0], id=which, files=(named,)) for which in (WITH_FILE, REPLACED)]
    tx.messages.append(USER, place.id, said, run_id=None)
    replaced = update(tables.messages).where(tables.messages.c.id == REPLACED)
    tx.connection.execute(replaced.values(replaced_at=NOON))


def _only_id(scene: Scene, table: Table) -> Any:
    return scene.run(lambda tx: tx.connection.execute(select(table.c.id).limit(1)).scalar_one())


def _for_user(attempt: Attempt, home: Home) -> Callable[[Tx], object]:
    return lambda tx: attempt(tx, USER, home)


def _for_stranger(attempt: Attempt, home: Home) -> Callable[[Tx], object]:
    return lambda tx: attempt(tx, STRANGER, home)


def _made_calls(scene: Scene, claim: Claim) -> list[ids.CallId]:
    def begin(tx: Tx) -> ids.CallId:
        which = ids.new_call_id()
        tx.tool_calls.begin(claim.turn, which, CALL, read_only=False)
        return which

    calls = [scene.run(begin), scene.run(begin)]
    unknown = update(tables.tool_calls).where(tables.tool_calls.c.id == calls[1])
    scene.run(lambda tx: tx.connection.execute(unknown.values(state="unknown", ended_at=NOON)))
    recorded = scene.run(begin)
    scene.run(lambda tx: tx.tool_calls.end(claim.turn, CallEnd(recorded, "")))
    return calls


def _begin(scene: Scene, **brief: Any) -> Claim:
    scene.task(**brief)
    return scene.begin_work()


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


@pytest.fixture
def home(scene: Scene) -> Home:
    return furnish(scene)


class UndoneError(Exception):
    """Ends a transaction without a trace."""


def test_every_function_that_takes_an_owner_has_an_entry_here() -> None:
    named = {name for name, function in functions() if takes(function, OWNERS)}

    assert named - BIRTHS - OF_A_USER == ATTEMPTS.keys() | OF_THEIR_OWN.keys()


def test_every_function_that_takes_an_id_takes_its_owner_too() -> None:
    others = tuple(kind for kind in IDS if kind is not UserId)
    ownerless = {
        name
        for name, function in functions()
        if takes(function, others) and not takes(function, OWNERS)
    }

    assert ownerless == set()


def test_a_stranger_with_the_ids_finds_nothing_and_changes_nothing(
    scene: Scene, home: Home
) -> None:
    before = scene.dump()
    for group, names in _by_group():
        for name in names:
            assert not _attempt(scene, name, home), name
        assert scene.dump() == before, group


def test_a_stranger_who_has_the_same_ids_reaches_only_what_is_theirs(
    scene: Scene, home: Home
) -> None:
    for conversation in (home.kept, home.held.conversation):
        scene.add(Step(conversation=replace(conversation, user_id=STRANGER, questions=())))
    before = _rows_of_user(scene)
    for group, names in _by_group():
        for name in names:
            _attempt(scene, name, home)
        assert _rows_of_user(scene) == before, group


def test_the_owner_with_the_same_ids_finds_or_changes_something(scene: Scene, home: Home) -> None:
    before = scene.dump()
    for name, attempt in ATTEMPTS.items():
        assert _does_something(scene, attempt, home, before), name


def _by_group() -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the names of the attempts group by group: reading all tables takes a while."""
    return groupby(sorted(ATTEMPTS), key=lambda name: name.partition(".")[0])


def _attempt(scene: Scene, name: str, home: Home) -> object:
    try:
        return scene.run(lambda tx: ATTEMPTS[name](tx, STRANGER, home))
    except REFUSALS:
        return None


def _rows_of_user(scene: Scene) -> list[str]:
    return [row for rows in scene.dump().values() for row in rows if f"'{USER}'" in row]


def _does_something(
    scene: Scene, attempt: Attempt, home: Home, before: Mapping[str, Sequence[str]]
) -> bool:
    seen = []

    def work(tx: Tx) -> None:
        seen.append(bool(attempt(tx, USER, home)) or read_everything(tx) != before)
        raise UndoneError

    with pytest.raises(UndoneError):
        scene.run(work)
    return seen == [True]


def test_what_a_stranger_writes_down_is_their_own(scene: Scene, home: Home) -> None:
    before = _all_rows(scene)
    for name, attempt in OF_THEIR_OWN.items():
        scene.run(_for_stranger(attempt, home))

        after = _all_rows(scene)
        assert after - before, name
        assert all(STRANGER in row for row in before ^ after), name
        before = after


def _all_rows(scene: Scene) -> set[str]:
    return {row for rows in scene.dump().values() for row in rows}
