"""Values of the core as they are shown, apart from conversations."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, Field

from backburner.api.schemas.base import example
from backburner.core.conversation import Message, MessageRole, Source
from backburner.core.ids import ConversationId
from backburner.core.memory import Memory
from backburner.core.notice import NoticeKind
from backburner.core.question import Purpose, Question, QuestionType
from backburner.core.run import (
    Failure,
    FailureKind,
    Run,
    RunKind,
    RunStatus,
    SkippedSlots,
    SkipReason,
)
from backburner.ports import GrantRow, NoticeRow, ToolCallRow

_NOON = "2026-11-16T12:00:00Z"


class MessageOut(BaseModel):
    model_config = example(
        id="m_0123456789abcdefghjkmnpqrs",
        role="user",
        content="Watch CI on main and tell me if it breaks.",
        source="chat",
        created_at=_NOON,
        run_id=None,
        outside=False,
    )

    id: str
    role: MessageRole
    content: str
    source: Source = Field(description="Whether it was said in the chat or by the worker.")
    created_at: datetime
    run_id: str | None = Field(description="The run that said it.")
    outside: bool = Field(description="These are somebody else's words.")

    @classmethod
    def of(cls, message: Message) -> Self:
        return cls.model_validate(message, from_attributes=True)


class QuestionOut(BaseModel):
    model_config = example(
        id="q_0123456789abcdefghjkmnpqrs",
        conversation_id="c_0123456789abcdefghjkmnpqrs",
        purpose="question",
        type="confirmation",
        prompt="Shall I answer Ann?",
        options=["yes", "no"],
        binds_to={},
        run_id="r_0123456789abcdefghjkmnpqrs",
        asked_at=_NOON,
        remind_at="2026-11-17T12:00:00Z",
        expires_at=None,
        default=None,
    )

    id: str
    conversation_id: str
    purpose: Purpose
    type: QuestionType
    prompt: str
    options: Sequence[str]
    binds_to: Mapping[str, Any] = Field(description="What exactly a yes is for.")
    run_id: str | None
    asked_at: datetime
    remind_at: datetime | None
    expires_at: datetime | None
    default: str | None = Field(description="What it counts as answered with when it expires.")

    @classmethod
    def of(cls, question: Question, conversation: ConversationId) -> Self:
        return cls(
            id=question.id,
            conversation_id=conversation,
            purpose=question.purpose,
            type=question.type,
            prompt=question.prompt,
            options=question.options,
            binds_to=question.binds_to,
            run_id=question.run_id,
            asked_at=question.asked_at,
            remind_at=question.remind_at,
            expires_at=question.expires_at,
            default=question.default,
        )


class FailureOut(BaseModel):
    kind: FailureKind
    message: str

    @classmethod
    def of(cls, failure: Failure | None) -> Self | None:
        return None if failure is None else cls(kind=failure.kind, message=failure.message)


class SkippedOut(BaseModel):
    reason: SkipReason
    count: int = Field(description="How many slots this stands for.")
    or_more: bool
    first_at: datetime
    last_at: datetime

    @classmethod
    def of(cls, skipped: SkippedSlots | None) -> Self | None:
        if skipped is None:
            return None
        gap = skipped.gap
        return cls(
            reason=skipped.reason,
            count=gap.count,
            or_more=gap.or_more,
            first_at=gap.first_at,
            last_at=gap.last_at,
        )


class RunOut(BaseModel):
    model_config = example(
        id="r_0123456789abcdefghjkmnpqrs",
        conversation_id="c_0123456789abcdefghjkmnpqrs",
        kind="background",
        status="success",
        started_at=_NOON,
        ended_at="2026-11-16T12:00:41Z",
        slot_at=_NOON,
        result="All green.",
        tokens=1834,
        profile="claude",
        escalated_from=None,
        failure=None,
        skipped=None,
    )

    id: str
    conversation_id: str
    kind: RunKind
    status: RunStatus
    started_at: datetime
    ended_at: datetime | None
    slot_at: datetime | None = Field(description="The time of the schedule that it stands for.")
    result: str | None
    tokens: int
    profile: str | None
    escalated_from: str | None = Field(description="The profile that could not do it.")
    failure: FailureOut | None
    skipped: SkippedOut | None

    @classmethod
    def of(cls, run: Run, **more: Any) -> Self:
        return cls(
            id=run.id,
            conversation_id=run.conversation_id,
            kind=run.kind,
            status=run.status,
            started_at=run.started_at,
            ended_at=run.ended_at,
            slot_at=run.slot_at,
            result=run.result,
            tokens=run.tokens,
            profile=run.profile,
            escalated_from=run.escalated_from,
            failure=FailureOut.of(run.failure),
            skipped=SkippedOut.of(run.skipped),
            **more,
        )


class ToolCallOut(BaseModel):
    id: str
    server: str
    tool: str
    arguments: Mapping[str, Any]
    read_only: bool
    state: str = Field(description="`started`, `done`, or `unknown`: nobody knows if it happened.")
    failed: bool
    result: str | None
    grant_id: str | None = Field(description="The yes that it used up.")
    started_at: datetime
    ended_at: datetime | None

    @classmethod
    def of(cls, call: ToolCallRow) -> Self:
        return cls.model_validate(call, from_attributes=True)


class RunWithCalls(RunOut):
    tool_calls: Sequence[ToolCallOut] = Field(description="What it did, in that order.")


class NoticeOut(BaseModel):
    model_config = example(
        id="n_0123456789abcdefghjkmnpqrs",
        conversation_id="c_0123456789abcdefghjkmnpqrs",
        run_id="r_0123456789abcdefghjkmnpqrs",
        kind="result",
        text="CI on main is red since 11:58.",
        question_id=None,
        created_at=_NOON,
        seen_at=None,
    )

    id: str
    conversation_id: str
    run_id: str | None
    kind: NoticeKind
    text: str
    question_id: str | None
    created_at: datetime
    seen_at: datetime | None

    @classmethod
    def of(cls, told: NoticeRow) -> Self:
        return cls.model_validate(told, from_attributes=True)


class GrantOut(BaseModel):
    model_config = example(
        id="g_0123456789abcdefghjkmnpqrs",
        conversation_id="c_0123456789abcdefghjkmnpqrs",
        server="backburner",
        tool="run_command",
        lasting=True,
        words=["git", "status"],
        whole=False,
        given_at=_NOON,
        expires_at=None,
    )

    id: str
    conversation_id: str
    server: str
    tool: str
    lasting: bool = Field(description="False: it is for one exact call, once.")
    words: Sequence[str] = Field(description="What a command has to begin with, or a host.")
    whole: bool = Field(description="The words are all there may be.")
    given_at: datetime
    expires_at: datetime | None

    @classmethod
    def of(cls, given: GrantRow) -> Self:
        grant = given.grant
        return cls(
            id=grant.id,
            conversation_id=given.conversation_id,
            server=grant.server,
            tool=grant.tool,
            lasting=grant.call is None,
            words=grant.words,
            whole=grant.whole,
            given_at=given.given_at,
            expires_at=grant.expires_at,
        )


class MemoryOut(BaseModel):
    model_config = example(
        key="coffee",
        text="Takes it black.",
        conversation_id=None,
        outside=False,
        created_at=_NOON,
        updated_at=_NOON,
    )

    key: str
    text: str
    conversation_id: str | None = Field(description="Where it was learned.")
    outside: bool = Field(description="Somebody else's words may be in it.")
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, memory: Memory) -> Self:
        return cls.model_validate(memory, from_attributes=True)
