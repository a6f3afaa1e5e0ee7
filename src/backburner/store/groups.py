"""The groups of a transaction that change rows, and announce what changed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from backburner.core.allowance import Allowance, AllowanceScope, Cost
from backburner.core.conversation import Conversation, Message
from backburner.core.ids import (
    CallId,
    ConversationId,
    GrantId,
    ItemId,
    NoticeId,
    QuestionId,
    RunId,
    UserId,
)
from backburner.core.question import Purpose, Question
from backburner.core.run import Item, Run, RunEnding, RunKind, Turn
from backburner.core.tool_journal import JournalEntry
from backburner.core.tool_policy import Grant, ToolCall
from backburner.core.transitions import Step
from backburner.ports import (
    Agenda,
    Claim,
    Claimer,
    Delivery,
    EventKind,
    Hint,
    HintKind,
    RescuedTurn,
    SpendingState,
    TurnFlags,
    UserState,
)
from backburner.store import steps
from backburner.store.accounts import users
from backburner.store.context import Context
from backburner.store.queue import agenda, claims, rescue, turns
from backburner.store.records import (
    conversations,
    grants,
    inbox,
    messages,
    notices,
    questions,
    runs,
    sessions,
    spending,
    tool_calls,
)

#: Later than any lease.
_END_OF_TIME = 2**62


@dataclass(frozen=True, slots=True)
class Group:
    tx: Context


class Conversations(Group):
    def load(self, user: UserId, conversation_id: ConversationId) -> Conversation:
        return conversations.load(self.tx.connection, user, conversation_id)

    def lock(self, user: UserId, conversation_id: ConversationId) -> Conversation:
        return conversations.lock(self.tx.connection, user, conversation_id)

    def add(self, step: Step) -> None:
        steps.add(self.tx.connection, step, cause=None, now=self.tx.now)
        self.tx.announce(step)

    def save(self, step: Step) -> None:
        steps.save(self.tx.connection, step, cause=None, now=self.tx.now)
        self.tx.announce(step)

    def delete(self, user: UserId, conversation_id: ConversationId) -> None:
        conversations.remove(self.tx.connection, user, conversation_id, now=self.tx.now)
        self.tx.events.note(user, conversation_id, EventKind.CONVERSATION)
        # Whoever works on it finds that it is gone.
        self.tx.hint(
            Hint(HintKind.CHANGED, user, conversation_id),
            Hint(HintKind.CANCEL, user, conversation_id),
        )
        # Perhaps somebody waited for it.
        self.tx.hint(Hint(HintKind.WORK, user))

    def followers(self, user: UserId, conversation_id: ConversationId) -> Sequence[ConversationId]:
        return conversations.followers(self.tx.connection, user, conversation_id)

    def children(self, user: UserId, conversation_id: ConversationId) -> Sequence[ConversationId]:
        return conversations.children(self.tx.connection, user, conversation_id)

    def open_children(
        self, user: UserId, conversation_id: ConversationId
    ) -> Sequence[Conversation]:
        return conversations.open_children(self.tx.connection, user, conversation_id)

    def parked(self, user: UserId) -> Sequence[ConversationId]:
        return conversations.parked(self.tx.connection, user)


class Messages(Group):
    def recent(
        self, user: UserId, conversation_id: ConversationId, *, limit: int
    ) -> Sequence[Message]:
        return messages.recent(self.tx.connection, user, conversation_id, limit=limit)

    def remove_last(self, user: UserId, conversation_id: ConversationId) -> None:
        messages.take_back_last(self.tx.connection, user, conversation_id, now=self.tx.now)


class Inbox(Group):
    def waiting(
        self, user: UserId, conversation_id: ConversationId, kind: RunKind
    ) -> Sequence[Item]:
        return inbox.waiting(self.tx.connection, user, conversation_id, kind)

    def served_by(
        self, user: UserId, conversation_id: ConversationId, run: RunId
    ) -> Sequence[Item]:
        return inbox.served_by(self.tx.connection, user, conversation_id, run)


class Questions(Group):
    def conversation_of(self, user: UserId, question: QuestionId) -> ConversationId:
        return questions.conversation_of(self.tx.connection, user, question)

    def open_allowances(self, user: UserId) -> frozenset[str]:
        return questions.allowances_asked_about(self.tx.connection, user)

    def purposes(self, user: UserId, question_ids: Iterable[QuestionId]) -> frozenset[Purpose]:
        return questions.purposes(self.tx.connection, user, question_ids)

    def was_asked(self, user: UserId, question: QuestionId) -> bool:
        return questions.was_asked(self.tx.connection, user, question)

    def snooze(self, user: UserId, question: Question) -> None:
        questions.put_off(self.tx.connection, user, question)
        self.tx.changed(user, self.conversation_of(user, question.id), EventKind.QUESTION)

    def due(self, *, limit: int) -> Sequence[tuple[UserId, QuestionId]]:
        return questions.due(self.tx.connection, limit=limit, now=self.tx.now)


class Queue(Group):
    def claim(self, reply: Claimer | None, work: Claimer | None) -> Claim | None:
        seen, now, tick = claims.look(self.tx.connection, self.tx.clock)
        self.tx.set_time(now, tick)
        claim = None
        if reply is not None and seen.people:
            claim = claims.claim_reply(
                self.tx.connection, reply, now=self.tx.now, tick=self.tx.tick
            )
        if claim is None and work is not None:
            claim = claims.claim_work(
                self.tx.connection,
                work,
                now=self.tx.now,
                tick=self.tx.tick,
                seen=seen,
                log=self.tx.events,
            )
        if claim is not None:
            self.tx.events.note(claim.turn.user_id, claim.turn.conversation_id, EventKind.RUN)
        for user, noted in self.tx.events.noted.items():
            self.tx.mentions |= {Hint(HintKind.CHANGED, user, which): None for which, _ in noted}
        return claim

    def waiting_profile(self) -> str | None:
        return claims.who_waits(self.tx.connection)

    def rescue(self, *, all_of_them: bool = False) -> RescuedTurn | None:
        tick = _END_OF_TIME if all_of_them else self.tx.tick
        freed = rescue.rescue(self.tx.connection, now=self.tx.now, tick=tick)
        if freed is not None:
            self.tx.announce(freed.step)
            self.tx.announce_end(freed.turn)
        return freed

    def agenda(self) -> Agenda:
        return agenda.look(self.tx.connection, self.tx.clock)


class Turns(Group):
    def renew(self, turn: Turn, *, lease: timedelta) -> TurnFlags:
        return turns.renew(self.tx.connection, turn, lease=lease, tick=self.tx.tick)

    def hold(self, turn: Turn) -> Conversation:
        return turns.hold(self.tx.connection, turn)

    def mark_outside_text(self, turn: Turn) -> None:
        turns.note_outside(self.tx.connection, turn)

    def is_cancelled(self, turn: Turn) -> bool:
        return turns.is_cancelled(self.tx.connection, turn.user_id, turn.run_id)

    def commit(
        self, turn: Turn, step: Step, ending: RunEnding, *, served: Iterable[ItemId] = ()
    ) -> None:
        turns.commit(self.tx.connection, turn, step, ending, served=served, now=self.tx.now)
        self.tx.announce(step)
        self.tx.announce_end(turn)

    def hand_back(
        self, turn: Turn, step: Step, *, until: datetime | None, served: Iterable[ItemId] = ()
    ) -> None:
        turns.hand_back(self.tx.connection, turn, step, until=until, served=served, now=self.tx.now)
        self.tx.announce(step)
        self.tx.announce_end(turn)


class Runs(Group):
    def load(self, user: UserId, run_id: RunId) -> Run:
        return runs.load(self.tx.connection, user, run_id)

    def history(
        self, user: UserId, conversation_id: ConversationId, *, limit: int
    ) -> Sequence[Run]:
        return runs.history(self.tx.connection, user, conversation_id, limit=limit)

    def save_draft(self, turn: Turn, text: str) -> None:
        runs.draft(self.tx.connection, turn, text, now=self.tx.now)
        self.tx.hint(Hint(HintKind.CHANGED, turn.user_id, turn.conversation_id))

    def stop_reply(self, user: UserId, conversation_id: ConversationId) -> bool:
        self.tx.hint(Hint(HintKind.CANCEL, user, conversation_id))
        return runs.ask_to_stop(
            self.tx.connection, user, conversation_id, kind=RunKind.REPLY, now=self.tx.now
        )

    def prune(self, *, before: datetime, limit: int) -> int:
        return runs.prune(self.tx.connection, before=before, limit=limit)

    def resume_waiting(
        self, user: UserId, conversation_id: ConversationId, *, at: datetime
    ) -> None:
        runs.let_go_on(self.tx.connection, user, conversation_id, at=at)
        self.tx.hint(Hint(HintKind.WORK, user))


class Sessions(Group):
    def load(self, turn: Turn, session_id: str) -> Sequence[str]:
        return sessions.load(self.tx.connection, turn, session_id)

    def has_entries(self, turn: Turn) -> bool:
        return sessions.has_remembered(self.tx.connection, turn)

    def delete(self, user: UserId, conversation_id: ConversationId, session_id: str) -> None:
        sessions.forget(self.tx.connection, user, conversation_id, session_id)

    def append(self, turn: Turn, session_id: str, entries: Iterable[str]) -> None:
        sessions.append(self.tx.connection, turn, session_id, entries)


class ToolCalls(Group):
    def begin(
        self,
        turn: Turn,
        call_id: CallId,
        call: ToolCall,
        *,
        read_only: bool,
        uses: GrantId | None = None,
    ) -> None:
        if uses is not None:
            grants.use(
                self.tx.connection, turn.user_id, turn.conversation_id, uses, now=self.tx.now
            )
        tool_calls.begin(
            self.tx.connection,
            turn,
            call_id,
            call,
            read_only=read_only,
            grant=uses,
            now=self.tx.now,
        )

    def has_begun(self, turn: Turn, call_id: CallId) -> bool:
        return tool_calls.has_begun(self.tx.connection, turn, call_id)

    def end(self, turn: Turn, call: CallId, result: str, *, failed: bool) -> None:
        tool_calls.end(self.tx.connection, turn, call, result, failed=failed, now=self.tx.now)

    def mark_unknown(self, turn: Turn) -> None:
        tool_calls.give_up(self.tx.connection, turn, now=self.tx.now)

    def settle(self, user: UserId, call: CallId, result: str) -> None:
        tool_calls.settle(self.tx.connection, user, call, result, now=self.tx.now)

    def of_run(self, user: UserId, run: RunId) -> Sequence[JournalEntry]:
        return tool_calls.of_run(self.tx.connection, user, run)


class Grants(Group):
    def valid(self, user: UserId, conversation_id: ConversationId) -> Sequence[Grant]:
        return grants.valid(self.tx.connection, user, conversation_id)

    def revoke(self, user: UserId, grant_id: GrantId) -> None:
        grants.revoke(self.tx.connection, user, grant_id, now=self.tx.now)

    def narrow(self, user: UserId, grant: Grant) -> None:
        grants.hold_to(self.tx.connection, user, grant)
        self.tx.hint(Hint(HintKind.CHANGED, user))


class Spending(Group):
    def add(
        self, turn: Turn, root: ConversationId, model: str, cost: Cost, *, counts_to: Iterable[str]
    ) -> None:
        spending.add(
            self.tx.connection, turn, root, model, cost, counts_to=counts_to, now=self.tx.now
        )

    def state(self, user: UserId, root: ConversationId, what: Iterable[str]) -> SpendingState:
        return spending.account(self.tx.connection, user, root, what)

    def was_recorded(self, turn: Turn, at: datetime) -> bool:
        return spending.has_spent(self.tx.connection, turn, at)

    def set_allowance(self, user: UserId, allowance: Allowance, root: ConversationId) -> None:
        spending.allow(self.tx.connection, user, allowance, root)
        self.tx.changed(user, None, EventKind.USER)

    def reset_allowance(self, user: UserId, scope: AllowanceScope) -> None:
        spending.disallow(self.tx.connection, user, scope)


class Users(Group):
    def load(self, user: UserId) -> UserState:
        return users.load(self.tx.connection, user)

    def lock(self, user: UserId) -> UserState:
        return users.lock(self.tx.connection, user)

    def pause_everything(self, user: UserId | None, *, paused: bool) -> None:
        users.pause_everything(self.tx.connection, user, paused=paused)
        self.tx.hint(Hint(HintKind.WORK), Hint(HintKind.CHANGED, user))
        for concerned in users.all_of_them(self.tx.connection) if user is None else (user,):
            self.tx.events.note(concerned, None, EventKind.USER)

    def set_zone(self, user: UserId, zone: str) -> None:
        users.set_zone(self.tx.connection, user, zone)


class Notices(Group):
    def mark_seen(self, user: UserId, notice_ids: Iterable[NoticeId]) -> int:
        self.tx.hint(Hint(HintKind.CHANGED, user))
        return notices.see(self.tx.connection, user, notice_ids, now=self.tx.now)

    def mark_seen_until(self, user: UserId, last: NoticeId) -> int:
        self.tx.hint(Hint(HintKind.CHANGED, user))
        return notices.see_until(self.tx.connection, user, last, now=self.tx.now)


class Deliveries(Group):
    def lease(self, *, lease: timedelta) -> Delivery | None:
        return notices.take(self.tx.connection, now=self.tx.now, tick=self.tx.tick, lease=lease)

    def mark_sent(self, delivery: Delivery, *, provider_id: str | None = None) -> bool:
        self.tx.changed(delivery.user_id, delivery.conversation_id, EventKind.NOTICE)
        return notices.sent(self.tx.connection, delivery, provider_id=provider_id, now=self.tx.now)

    def mark_failed(self, delivery: Delivery, why: str, *, again_at: datetime | None) -> bool:
        self.tx.changed(delivery.user_id, delivery.conversation_id, EventKind.NOTICE)
        return notices.failed(self.tx.connection, delivery, why, again_at=again_at, now=self.tx.now)
