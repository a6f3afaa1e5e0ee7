"""Converts rows to values of the core, and back."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import Row, RowMapping

from backburner.core.content.file import FileReference
from backburner.core.conversation import (
    Author,
    Conversation,
    Destination,
    EndedAs,
    Kind,
    Message,
    MessageRole,
    Notify,
    OnRepeatedFailure,
    PauseReason,
    Session,
    Source,
    State,
    Status,
    Use,
    WorkFolder,
)
from backburner.core.ids import ConversationId, ItemId, MessageId, QuestionId, RunId
from backburner.core.question import Purpose, Question, QuestionType
from backburner.core.run import (
    Failure,
    FailureKind,
    Item,
    ItemKind,
    Run,
    RunKind,
    RunStatus,
    SkippedSlots,
    SkipReason,
    StartedBy,
)
from backburner.core.schedule import After, Gap
from backburner.core.schedule.serialize import from_json, to_json

#: Fields of a conversation that are columns of the same name and type.
_PLAIN = tuple(
    field.name
    for field in fields(Conversation)
    if field.name
    not in (
        *("kind", "status", "created_by", "schedule", "pause_reason", "state", "questions"),
        *(
            "connections",
            "folder",
            "session",
            "ended_as",
            "tools",
            "uses",
            "on_repeated_failure",
            "notify",
            "reports_to",
        ),
    )
)


def to_row(conversation: Conversation) -> dict[str, Any]:
    """Return the columns of a conversation, without its turn and its questions."""
    row = {name: getattr(conversation, name) for name in _PLAIN}
    schedule, session = conversation.schedule, conversation.session
    folder = conversation.folder
    row |= {
        "kind": conversation.kind.value,
        "status": conversation.status.value,
        "created_by": conversation.created_by.value,
        "schedule": None if schedule is None else json.dumps(to_json(schedule)),
        "after_id": schedule.conversation if isinstance(schedule, After) else None,
        "pause_reason": conversation.pause_reason and conversation.pause_reason.value,
        "context": dump(conversation.state.context),
        "step": conversation.state.step,
        "data": dump(conversation.state.data),
        "folder": folder and folder.path,
        "folder_machine": folder and folder.machine,
        "folder_read_only": folder is not None and folder.read_only,
        "outside_state": json.dumps(sorted(conversation.state.outside), ensure_ascii=False),
        "session_profile": session and session.profile,
        "session_id": session and session.id,
        "session_tokens": session.tokens if session else 0,
        "session_missed_since": session and session.missed_since,
        "ended_as": conversation.ended_as and conversation.ended_as.value,
        "tools": _dump_names(conversation.tools),
        "connections": _dump_names(conversation.connections),
        "uses": None if conversation.uses is None else dump_uses(conversation.uses),
        "on_repeated_failure": conversation.on_repeated_failure.value,
        "notify": conversation.notify.value,
        "reports_to": json.dumps(
            [(place.channel, place.target) for place in conversation.reports_to]
        ),
    }
    return row


def to_conversation(row: Row[Any], questions: tuple[Question, ...]) -> Conversation:
    values = row._mapping  # noqa: SLF001 (the public name of a row's mapping)
    return Conversation(
        **{name: values[name] for name in _PLAIN},
        kind=Kind(values["kind"]),
        status=Status(values["status"]),
        created_by=Author(values["created_by"]),
        schedule=values["schedule"] and from_json(json.loads(values["schedule"])),
        pause_reason=values["pause_reason"] and PauseReason(values["pause_reason"]),
        state=_to_state(values),
        questions=questions,
        folder=_to_folder(values),
        session=_to_session(values),
        ended_as=values["ended_as"] and EndedAs(values["ended_as"]),
        tools=_load_names(values["tools"]),
        connections=_load_names(values["connections"]),
        uses=None if values["uses"] is None else load_uses(values["uses"]),
        on_repeated_failure=OnRepeatedFailure(values["on_repeated_failure"]),
        notify=Notify(values["notify"]),
        reports_to=tuple(Destination(*place) for place in json.loads(values["reports_to"])),
    )


def _to_state(values: RowMapping) -> State:
    marks = values["outside_state"]
    return State(
        load(values["context"]),
        values["step"],
        load(values["data"]),
        frozenset() if marks == "[]" else frozenset(json.loads(marks)),
    )


def _to_session(values: RowMapping) -> Session | None:
    profile = values["session_profile"]
    if profile is None:
        return None
    return Session(
        profile, values["session_id"], values["session_tokens"], values["session_missed_since"]
    )


def _to_folder(values: RowMapping) -> WorkFolder | None:
    path = values["folder"]
    if path is None:
        return None
    return WorkFolder(path, values["folder_machine"], values["folder_read_only"])


def to_message(row: Row[Any]) -> Message:
    return Message(
        id=MessageId(row.id),
        conversation_id=ConversationId(row.conversation_id),
        role=MessageRole(row.role),
        content=row.content,
        source=Source(row.source),
        created_at=row.created_at,
        run_id=row.run_id,
        outside=row.outside,
        shows=row.shows,
        closes=row.closes,
        files=load_references(row.files),
    )


def to_question(row: Row[Any]) -> Question:
    return Question(
        id=QuestionId(row.id),
        purpose=Purpose(row.purpose),
        type=QuestionType(row.type),
        prompt=row.prompt,
        asked_at=row.asked_at,
        options=tuple(json.loads(row.options)),
        run_id=row.run_id,
        run_kind=RunKind(row.run_kind),
        binds_to=load(row.binds_to),
        remind_at=row.remind_at,
        reminders=row.reminders,
        expires_at=row.expires_at,
        default=row.default_answer,
        outside=row.outside,
    )


def to_item(row: Row[Any]) -> Item:
    return Item(
        id=ItemId(row.id),
        kind=ItemKind(row.kind),
        run_kind=RunKind(row.run_kind),
        arrived_at=row.arrived_at,
        at_once=row.at_once,
        content=load(row.content),
    )


def to_run(row: Row[Any]) -> Run:
    failed, reason = row.failure_kind, row.skip_reason
    return Run(
        id=RunId(row.id),
        conversation_id=ConversationId(row.conversation_id),
        kind=RunKind(row.kind),
        status=RunStatus(row.status),
        epoch=row.epoch,
        schedule_revision=row.schedule_revision,
        started_at=row.started_at,
        ended_at=row.ended_at,
        resumed_at=row.resumed_at,
        slot_at=row.slot_at,
        started_by=row.started_by and StartedBy(row.started_by),
        failure=failed and Failure(FailureKind(failed), row.failure_message),
        waits_since=row.waits_since,
        own_trouble_since=row.own_trouble_since,
        connection=row.connection_id,
        waits_for_user=row.status == RunStatus.QUEUED.value and row.wait_until is None,
        result=row.result,
        tokens=row.tokens,
        profile=row.profile,
        escalated_from=row.escalated_from,
        skipped=reason and SkippedSlots(_to_gap(row), SkipReason(reason)),
        outside=row.outside,
    )


def _to_gap(row: Row[Any]) -> Gap:
    return Gap(row.gap_count, row.gap_first_at, row.gap_last_at, row.gap_or_more)


def _dump_names(names: tuple[str, ...] | None) -> str | None:
    return None if names is None else json.dumps(names)


def _load_names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(json.loads(text))


def dump_uses(uses: frozenset[Use]) -> str:
    return " ".join(sorted(uses))


def load_uses(text: str) -> frozenset[Use]:
    return frozenset(Use(name) for name in text.split())


def dump_references(files: Sequence[FileReference]) -> str | None:
    return json.dumps([asdict(file) for file in files], ensure_ascii=False) if files else None


def load_references(text: str | None) -> tuple[FileReference, ...]:
    return tuple(FileReference(**file) for file in json.loads(text)) if text else ()


def dump(value: Mapping[str, Any]) -> str:
    return json.dumps(dict(value), ensure_ascii=False)


def load(text: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(text)
    return value
