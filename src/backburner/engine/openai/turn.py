"""A turn in progress: the messages so far, the model's response, and the calls in it.

Every message is remembered at once, so that a turn may be cut anywhere; `history` completes it.
"""

from collections.abc import AsyncGenerator, Sequence

from pydantic_ai.messages import ModelMessage, ModelResponse

from backburner.core.errors import EngineFailed
from backburner.core.ids import CallId, new_session_id
from backburner.engine.endings import explain_nothing, note_for
from backburner.engine.fence import fence
from backburner.engine.openai import history, images
from backburner.engine.openai.tools import (
    OUTCOME_TOOL,
    ParsedCall,
    name_tools,
    parameters_for,
    parse_object,
    read_calls,
)
from backburner.engine.openai.usage import call_usage, session_tokens
from backburner.ports import (
    EngineEvent,
    Gate,
    SessionEntries,
    TextDelta,
    ToolResult,
    TurnEnded,
    TurnRequest,
)

ACCEPTED = "The outcome was accepted."
TOO_EARLY = "Not accepted: read the results of the other calls first, then give the outcome alone."
NOT_MADE = "This call was not made: the run ended before it."
#: Between messages of the model.
PARAGRAPH = "\n\n"


class OpenAITurn:
    def __init__(
        self, request: TurnRequest, gate: Gate, model: str, *, sees_images: bool = False
    ) -> None:
        self._request = request
        self._gate = gate
        self._model = model
        self._session_id = request.session_id or new_session_id()
        self._tools = name_tools(request.tools)
        self.parameters = parameters_for(self._tools, request.schema)
        self._sees_images = sees_images
        prompt: ModelMessage = history.prompt(request.prompt, request.images)
        self.messages: list[ModelMessage] = [*history.load(request.memory), prompt]
        # Saved with the first response: without one there is no session to resume.
        self._unsaved = [prompt]
        if not sees_images:
            self.messages = images.without_images(self.messages)
            self._unsaved = images.without_images(self._unsaved)
        self._turn_text = ""
        #: The part of it that belongs to the current message.
        self._text = ""
        self._response = ModelResponse(parts=[])
        self._responses = 0
        self.is_over = False

    @property
    def can_start_over(self) -> bool:
        """True while the turn has had no effects, and has memory that a new start would drop."""
        return self._responses == 0 and bool(self._request.memory)

    def drop_images(self) -> bool:
        """Take the images out of the messages, for a model that refuses them; False: none."""
        if not images.has_images(self.messages):
            return False
        self.messages = images.without_images(self.messages)
        # They would be refused in every later turn, too.
        self._unsaved = images.without_images(self._unsaved)
        self._sees_images = False
        return True

    def add_text(self, text: str) -> str:
        """Add a piece of the model's text; return it as it is to be streamed."""
        piece = PARAGRAPH + text if self._turn_text and not self._text else text
        self._turn_text += piece
        self._text += text
        return piece

    def add_response(self, response: ModelResponse) -> None:
        self._response = response
        self._responses += 1

    async def act(self) -> AsyncGenerator[EngineEvent, None]:
        """Make the calls in the model's message, or end the turn."""
        response, calls = read_calls(self._response)
        text, self._text = self._text, ""
        usage = call_usage(response, self.messages, self.parameters)
        tokens = session_tokens(usage, self.messages, self.parameters)
        may_continue = await self._gate.pay(self._model, usage)
        reason = response.finish_reason
        if not (calls or self._turn_text):
            raise EngineFailed(explain_nothing(reason))
        if calls or text:
            yield self._remember(response, tokens=tokens)
        if not calls:
            self.is_over = True
            wants_outcome = self._request.schema is not None
            if (note := note_for(reason)) and not wants_outcome:
                yield TextDelta(self.add_text(note))
            yield TurnEnded(self._turn_text, _outcome_in(text) if wants_outcome else None)
        elif self._is_outcome(calls):
            self.is_over = True
            yield self._remember(history.result(calls[0].part, ACCEPTED))
            yield TurnEnded(self._turn_text, _outcome_of(calls[0]))
        else:
            results = list[tuple[str, ToolResult]]()
            for call in calls:
                result = await self._call(call) if may_continue else _NOT_MADE
                self.is_over = self.is_over or result.stop
                results.append((call.part.tool_name, result))
                text = result.text if self._sees_images else images.describe_unseen(result)
                message = history.result(call.part, text, failed=result.failed)
                yield self._remember(message, call_id=result.call_id)
            # Results have to follow their calls at once.
            if self._sees_images and (shown := images.show(results)) is not None:
                yield self._remember(shown)

    async def _call(self, call: ParsedCall) -> ToolResult:
        name = call.part.tool_name
        tool = self._tools.get(name)
        if name == OUTCOME_TOOL and self._request.schema is not None:
            return ToolResult(TOO_EARLY, failed=True)
        if tool is None:
            return ToolResult(f"Unknown tool: {name!r}.", failed=True)
        if call.arguments is None:
            problem = f"{name} was not called: the arguments are not a JSON object."
            return ToolResult(f"{problem} You wrote: {call.written[:500]}", failed=True)
        arguments = tool.schema.restore(call.arguments)
        return fence(tool.offer, await self._gate.call(tool.offer, arguments))

    def _is_outcome(self, calls: Sequence[ParsedCall]) -> bool:
        has_schema = self._request.schema is not None
        return has_schema and [call.part.tool_name for call in calls] == [OUTCOME_TOOL]

    def _remember(
        self, message: ModelMessage, *, tokens: int | None = None, call_id: CallId | None = None
    ) -> SessionEntries:
        self.messages.append(message)
        self._unsaved.append(message)
        entries = tuple(map(history.dump, self._unsaved))
        self._unsaved.clear()
        calls = () if call_id is None else (call_id,)
        return SessionEntries(self._session_id, entries, tokens, calls)


_NOT_MADE = ToolResult(NOT_MADE, failed=True, stop=True)


def _outcome_of(call: ParsedCall) -> object:
    """Return the outcome, or its text if that is not JSON; the caller validates it."""
    return call.written if call.arguments is None else dict(call.arguments)


def _outcome_in(text: str) -> object:
    """Find an outcome written as text instead of a call, as small models do."""
    bare = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    return parse_object(bare)
