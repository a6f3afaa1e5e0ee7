"""Stops the work that replies to a message had set up, when its user replaces the message."""

from collections.abc import Collection, Sequence
from datetime import datetime

from backburner.actions import create
from backburner.actions.steps import save
from backburner.core import tool_journal, transitions
from backburner.core.conversation import Conversation, Message
from backburner.core.ids import RunId, UserId
from backburner.core.run import RunStatus
from backburner.core.tool_journal import UNDONE
from backburner.core.transitions import NewMessage
from backburner.core.work import lookup
from backburner.ports import Tx


class ReplacedWork:
    """The work that replies to a message have set up and nobody has changed since.

    `again`: the message is sent again as it was.
    """

    def __init__(self, tx: Tx, user: UserId, message: Message, *, again: bool) -> None:
        self._tx, self._user, self._again = tx, user, again
        self._here = message.conversation_id
        self._since: datetime = message.created_at
        self._stopped = list[Conversation]()

    def stop_children(self) -> None:
        """Stop open tasks and jobs, with what is below them. What they did stays.

        Before the conversation is locked: children are locked first, as when they report.
        """
        tx, user = self._tx, self._user
        children = [
            child
            for child in tx.conversations.open_children(user, self._here)
            if child.created_at >= self._since
        ]
        replies = self._find_replies(children)
        for child in children:
            if child.set_up_by not in replies:
                continue
            work = tx.conversations.lock(user, child.id)
            # It may have ended or been changed before it was locked.
            if work.set_up_by in replies and lookup.is_open(work):
                step = transitions.stop_child(work, now=tx.now, again=self._again)
                create.save_change(tx, work, step)
                self._stopped.append(work)

    def stop_own(self, here: Conversation) -> Conversation:
        """End the work that the locked conversation was given, and what began before the lock."""
        self.stop_children()
        if here.schedule is None or here.set_up_by not in self._find_replies([here]):
            return here
        step = transitions.stop_own_work(here, since=self._since, now=self._tx.now)
        save(self._tx, step)
        self._stopped.append(here)
        return step.conversation

    def settle(self) -> Sequence[NewMessage]:
        """Say what was stopped, and keep it from counting as done when a reply is given again."""
        for run_id in _runs_of(self._stopped):
            if self._tx.runs.load(self._user, run_id).status is RunStatus.SUCCESS:
                # Nothing is repeated after it.
                continue
            calls = self._tx.tool_calls.of_run(self._user, run_id)
            undone = tool_journal.find_undone(calls, self._stopped)
            self._tx.tool_calls.undo(self._user, [call.id for call in undone], UNDONE)
        return transitions.stop_note(self._stopped, again=self._again)

    def _find_replies(self, works: Sequence[Conversation]) -> Collection[RunId]:
        return self._tx.runs.replies_since(self._user, self._here, _runs_of(works), self._since)


def _runs_of(works: Sequence[Conversation]) -> Collection[RunId]:
    return {work.set_up_by for work in works if work.set_up_by is not None}
