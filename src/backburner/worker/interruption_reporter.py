"""Asks users about files that have changed since a command began which was then interrupted."""

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from backburner.actions import steps
from backburner.actions.deps import Deps
from backburner.core import routing, tool_policy, transitions
from backburner.core.conversation import Conversation, Status
from backburner.core.errors import NotFound
from backburner.core.ids import UserId, derive_question_id, new_conversation_id
from backburner.core.question import FIRST_REMINDER, Purpose, Question, QuestionType
from backburner.core.run import RunKind
from backburner.core.shown_call import excerpt, show_call
from backburner.core.validation import escape_hidden
from backburner.ports import InterruptedCommand, Tx

TITLE = "Interrupted command"


@dataclass(slots=True)
class InterruptionReporter:
    deps: Deps

    async def run_once(self) -> bool:
        async with self.deps.interrupted_commands() as commands:
            for command in commands:
                await self.deps.store.transact(partial(self._ask, command))
        return False

    def _ask(self, command: InterruptedCommand, tx: Tx) -> None:
        turn, question = command.turn, _question(command, now=tx.now)
        # It may have been asked before the record of the command could be removed.
        if tx.questions.exists(turn.user_id, question.id):
            return
        archived: Conversation | None = None
        with suppress(NotFound):
            archived = tx.conversations.lock(turn.user_id, turn.conversation_id)
            if archived.status is not Status.ARCHIVED:
                steps.save(tx, transitions.ask_owner(archived, question))
                return
        with suppress(NotFound):
            self._ask_in_new_chat(tx, turn.user_id, archived, question)

    def _ask_in_new_chat(
        self, tx: Tx, user: UserId, archived: Conversation | None, question: Question
    ) -> None:
        # An erased user has none.
        tx.users.load(user)
        chat = transitions.start_chat(new_conversation_id(), user, now=tx.now).conversation
        # It has no more rights than the one before, and the command may have written the question.
        chat = replace(chat, outside_read=True, uses=frozenset())
        if archived is not None:
            chat = replace(
                chat,
                uses=archived.uses,
                tools=archived.tools,
                requested_profile=archived.requested_profile,
                parent_id=archived.parent_id,
            )
        chat = routing.assign(transitions.rename(chat, TITLE).conversation, self.deps.routes)
        question = replace(question, run_id=None, run_kind=RunKind.REPLY)
        tx.conversations.add(transitions.ask_owner(chat, question))


def _question(command: InterruptedCommand, *, now: datetime) -> Question:
    # Indented, so that no line of it can be taken for one of ours.
    line = excerpt(escape_hidden(command.line)).replace("\n", "\n    ")
    changes = "\n".join(f"{show_call(call)}\n{difference}" for call, difference in command.calls)
    calls = [call for call, _ in command.calls]
    return Question(
        id=derive_question_id(command.id, "interrupted"),
        purpose=Purpose.APPROVAL,
        type=QuestionType.CHOICE,
        prompt="This command was interrupted, because Backburner or its machine stopped:"
        f"\n    {line}"
        "\nFiles that other programs obey are not what they were before it began. The command may"
        " have changed them, or you; nothing was put back."
        "\nMay I put back what was there before? After a no they stay as they are."
        f"\n{changes}",
        options=tool_policy.approval_options(calls),
        run_id=command.turn.run_id,
        run_kind=command.turn.kind,
        binds_to=tool_policy.approval_binding(calls),
        asked_at=now,
        remind_at=now + FIRST_REMINDER,
        outside=True,
    )
