"""An open transaction, with everything that may be done in it."""

from collections.abc import Iterable, Sequence
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
from backburner.store.groups import Groups
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


class Tx(Groups):
    def load(self, user: UserId, conversation_id: ConversationId) -> Conversation:
        return conversations.load(self.connection, user, conversation_id)

    def lock(self, user: UserId, conversation_id: ConversationId) -> Conversation:
        return conversations.lock(self.connection, user, conversation_id)

    def add(self, step: Step) -> None:
        steps.add(self.connection, step, cause=None, now=self.now)
        self.announce(step)

    def save(self, step: Step) -> None:
        steps.save(self.connection, step, cause=None, now=self.now)
        self.announce(step)

    def delete(self, user: UserId, conversation_id: ConversationId) -> None:
        conversations.remove(self.connection, user, conversation_id, now=self.now)
        self.events.note(user, conversation_id, EventKind.CONVERSATION)
        # Whoever works on it finds that it is gone.
        self.hint(
            Hint(HintKind.CHANGED, user, conversation_id),
            Hint(HintKind.CANCEL, user, conversation_id),
        )
        # Perhaps somebody waited for it.
        self.hint(Hint(HintKind.WORK, user))

    def followers(self, user: UserId, conversation_id: ConversationId) -> Sequence[ConversationId]:
        return conversations.followers(self.connection, user, conversation_id)

    def children(self, user: UserId, conversation_id: ConversationId) -> Sequence[ConversationId]:
        return conversations.children(self.connection, user, conversation_id)

    def open_children(
        self, user: UserId, conversation_id: ConversationId
    ) -> Sequence[Conversation]:
        return conversations.open_children(self.connection, user, conversation_id)

    def recent_messages(
        self, user: UserId, conversation_id: ConversationId, *, limit: int
    ) -> Sequence[Message]:
        return messages.recent(self.connection, user, conversation_id, limit=limit)

    def take_back_last_message(self, user: UserId, conversation_id: ConversationId) -> None:
        messages.take_back_last(self.connection, user, conversation_id, now=self.now)

    def items(self, user: UserId, conversation_id: ConversationId, kind: RunKind) -> Sequence[Item]:
        return inbox.waiting(self.connection, user, conversation_id, kind)

    def items_served_by(
        self, user: UserId, conversation_id: ConversationId, run: RunId
    ) -> Sequence[Item]:
        return inbox.served_by(self.connection, user, conversation_id, run)

    def conversation_of(self, user: UserId, question: QuestionId) -> ConversationId:
        return questions.conversation_of(self.connection, user, question)

    def allowances_asked_about(self, user: UserId) -> frozenset[str]:
        return questions.allowances_asked_about(self.connection, user)

    def purposes(self, user: UserId, question_ids: Iterable[QuestionId]) -> frozenset[Purpose]:
        return questions.purposes(self.connection, user, question_ids)

    def was_asked(self, user: UserId, question: QuestionId) -> bool:
        return questions.was_asked(self.connection, user, question)

    def put_off(self, user: UserId, question: Question) -> None:
        questions.put_off(self.connection, user, question)
        self.changed(user, self.conversation_of(user, question.id), EventKind.QUESTION)

    def questions_due(self, *, limit: int) -> Sequence[tuple[UserId, QuestionId]]:
        return questions.due(self.connection, limit=limit, now=self.now)

    def claim(self, reply: Claimer | None, work: Claimer | None) -> Claim | None:
        seen, now, tick = claims.look(self.connection, self.clock)
        self.set_time(now, tick)
        claim = None
        if reply is not None and seen.people:
            claim = claims.claim_reply(self.connection, reply, now=self.now, tick=self.tick)
        if claim is None and work is not None:
            claim = claims.claim_work(
                self.connection, work, now=self.now, tick=self.tick, seen=seen, log=self.events
            )
        if claim is not None:
            self.events.note(claim.turn.user_id, claim.turn.conversation_id, EventKind.RUN)
        for user, noted in self.events.noted.items():
            self.mentions |= {Hint(HintKind.CHANGED, user, which): None for which, _ in noted}
        return claim

    def who_waits(self) -> str | None:
        return claims.who_waits(self.connection)

    def renew(self, turn: Turn, *, lease: timedelta) -> TurnFlags:
        return turns.renew(self.connection, turn, lease=lease, tick=self.tick)

    def hold(self, turn: Turn) -> Conversation:
        return turns.hold(self.connection, turn)

    def note_outside(self, turn: Turn) -> None:
        turns.note_outside(self.connection, turn)

    def is_cancelled(self, turn: Turn) -> bool:
        return turns.is_cancelled(self.connection, turn.user_id, turn.run_id)

    def commit(
        self, turn: Turn, step: Step, ending: RunEnding, *, served: Iterable[ItemId] = ()
    ) -> None:
        turns.commit(self.connection, turn, step, ending, served=served, now=self.now)
        self.announce(step)
        self.announce_end(turn)

    def hand_back(
        self, turn: Turn, step: Step, *, until: datetime | None, served: Iterable[ItemId] = ()
    ) -> None:
        turns.hand_back(self.connection, turn, step, until=until, served=served, now=self.now)
        self.announce(step)
        self.announce_end(turn)

    def rescue(self, *, all_of_them: bool = False) -> RescuedTurn | None:
        tick = _END_OF_TIME if all_of_them else self.tick
        freed = rescue.rescue(self.connection, now=self.now, tick=tick)
        if freed is not None:
            self.announce(freed.step)
            self.announce_end(freed.turn)
        return freed

    def agenda(self) -> Agenda:
        return agenda.look(self.connection, self.clock)

    def run(self, user: UserId, run_id: RunId) -> Run:
        return runs.load(self.connection, user, run_id)

    def history(
        self, user: UserId, conversation_id: ConversationId, *, limit: int
    ) -> Sequence[Run]:
        return runs.history(self.connection, user, conversation_id, limit=limit)

    def draft(self, turn: Turn, text: str) -> None:
        runs.draft(self.connection, turn, text, now=self.now)
        self.hint(Hint(HintKind.CHANGED, turn.user_id, turn.conversation_id))

    def stop_reply(self, user: UserId, conversation_id: ConversationId) -> bool:
        self.hint(Hint(HintKind.CANCEL, user, conversation_id))
        return runs.ask_to_stop(
            self.connection, user, conversation_id, kind=RunKind.REPLY, now=self.now
        )

    def prune(self, *, before: datetime, limit: int) -> int:
        return runs.prune(self.connection, before=before, limit=limit)

    def session(self, turn: Turn, session_id: str) -> Sequence[str]:
        return sessions.load(self.connection, turn, session_id)

    def has_remembered(self, turn: Turn) -> bool:
        return sessions.has_remembered(self.connection, turn)

    def forget(self, user: UserId, conversation_id: ConversationId, session_id: str) -> None:
        sessions.forget(self.connection, user, conversation_id, session_id)

    def remember(self, turn: Turn, session_id: str, entries: Iterable[str]) -> None:
        sessions.append(self.connection, turn, session_id, entries)

    def begin_call(
        self,
        turn: Turn,
        call_id: CallId,
        call: ToolCall,
        *,
        read_only: bool,
        uses: GrantId | None = None,
    ) -> None:
        if uses is not None:
            grants.use(self.connection, turn.user_id, turn.conversation_id, uses, now=self.now)
        tool_calls.begin(
            self.connection, turn, call_id, call, read_only=read_only, grant=uses, now=self.now
        )

    def has_begun(self, turn: Turn, call_id: CallId) -> bool:
        return tool_calls.has_begun(self.connection, turn, call_id)

    def end_call(self, turn: Turn, call: CallId, result: str, *, failed: bool) -> None:
        tool_calls.end(self.connection, turn, call, result, failed=failed, now=self.now)

    def give_up_calls(self, turn: Turn) -> None:
        tool_calls.give_up(self.connection, turn, now=self.now)

    def settle_call(self, user: UserId, call: CallId, result: str) -> None:
        tool_calls.settle(self.connection, user, call, result, now=self.now)

    def calls_of(self, user: UserId, run: RunId) -> Sequence[JournalEntry]:
        return tool_calls.of_run(self.connection, user, run)

    def grants(self, user: UserId, conversation_id: ConversationId) -> Sequence[Grant]:
        return grants.valid(self.connection, user, conversation_id)

    def revoke(self, user: UserId, grant_id: GrantId) -> None:
        grants.revoke(self.connection, user, grant_id, now=self.now)

    def hold_to(self, user: UserId, grant: Grant) -> None:
        grants.hold_to(self.connection, user, grant)
        self.hint(Hint(HintKind.CHANGED, user))

    def spend(
        self, turn: Turn, root: ConversationId, model: str, cost: Cost, *, counts_to: Iterable[str]
    ) -> None:
        spending.add(self.connection, turn, root, model, cost, counts_to=counts_to, now=self.now)

    def account(self, user: UserId, root: ConversationId, what: Iterable[str]) -> SpendingState:
        return spending.account(self.connection, user, root, what)

    def has_spent(self, turn: Turn, at: datetime) -> bool:
        return spending.has_spent(self.connection, turn, at)

    def parked(self, user: UserId) -> Sequence[ConversationId]:
        return conversations.parked(self.connection, user)

    def let_go_on(self, user: UserId, conversation_id: ConversationId, *, at: datetime) -> None:
        runs.let_go_on(self.connection, user, conversation_id, at=at)
        self.hint(Hint(HintKind.WORK, user))

    def set_allowance(self, user: UserId, allowance: Allowance, root: ConversationId) -> None:
        spending.allow(self.connection, user, allowance, root)
        self.changed(user, None, EventKind.USER)

    def disallow(self, user: UserId, scope: AllowanceScope) -> None:
        spending.disallow(self.connection, user, scope)

    def person(self, user: UserId) -> UserState:
        return users.load(self.connection, user)

    def lock_person(self, user: UserId) -> UserState:
        return users.lock(self.connection, user)

    def pause_everything(self, user: UserId | None, *, paused: bool) -> None:
        users.pause_everything(self.connection, user, paused=paused)
        self.hint(Hint(HintKind.WORK), Hint(HintKind.CHANGED, user))
        for concerned in users.all_of_them(self.connection) if user is None else (user,):
            self.events.note(concerned, None, EventKind.USER)

    def set_zone(self, user: UserId, zone: str) -> None:
        users.set_zone(self.connection, user, zone)

    def see_notices(self, user: UserId, notice_ids: Iterable[NoticeId]) -> int:
        self.hint(Hint(HintKind.CHANGED, user))
        return notices.see(self.connection, user, notice_ids, now=self.now)

    def see_notices_until(self, user: UserId, last: NoticeId) -> int:
        self.hint(Hint(HintKind.CHANGED, user))
        return notices.see_until(self.connection, user, last, now=self.now)

    def take_delivery(self, *, lease: timedelta) -> Delivery | None:
        return notices.take(self.connection, now=self.now, tick=self.tick, lease=lease)

    def delivered(self, delivery: Delivery, *, provider_id: str | None = None) -> bool:
        self.changed(delivery.user_id, delivery.conversation_id, EventKind.NOTICE)
        return notices.sent(self.connection, delivery, provider_id=provider_id, now=self.now)

    def not_delivered(self, delivery: Delivery, why: str, *, again_at: datetime | None) -> bool:
        self.changed(delivery.user_id, delivery.conversation_id, EventKind.NOTICE)
        return notices.failed(self.connection, delivery, why, again_at=again_at, now=self.now)
