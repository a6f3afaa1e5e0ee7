"""A turn under way: what the model is sent, what it answered, and what follows from that.

Whatever was said or done is remembered at once, so that a turn may be cut anywhere; `history`
makes whole what was cut.
"""

from collections.abc import AsyncGenerator, Sequence

from pydantic_ai.messages import ModelMessage, ModelResponse

from backburner.core.errors import EngineFailed
from backburner.core.ids import new_session_id
from backburner.engine.openai import history
from backburner.engine.openai import usage as counting
from backburner.engine.openai.calls import Call, read_object, take_calls
from backburner.engine.openai.naming import name_tools
from backburner.engine.openai.tools import OUTCOME_TOOL, parameters_for
from backburner.ports import EngineEvent, Gate, SessionEntries, ToolResult, TurnEnded, TurnRequest

ACCEPTED = "The outcome was taken."
TOO_EARLY = "This is not taken: see first what the other calls gave, then give the outcome alone."
NOT_MADE = "This call was not made: the run ended before."
#: Kept apart from what was said before.
APART = "\n\n"


class Turn:
    def __init__(self, request: TurnRequest, gate: Gate, model: str) -> None:
        self._request = request
        self._gate = gate
        self._model = model
        self._session_id = request.session_id or new_session_id()
        self._offers = name_tools(request.tools, taken=OUTCOME_TOOL)
        self.parameters = parameters_for(self._offers, request.schema)
        prompt = history.prompt(request.prompt)
        self.messages: list[ModelMessage] = [*history.load(request.memory), prompt]
        # Remembered with the first answer: without one there is nothing to go on from.
        self._unremembered: list[ModelMessage] = [prompt]
        self._said = ""
        #: Of these, what belongs to the message that is being said.
        self._text = ""
        self._answer = ModelResponse(parts=[])
        self._answers = 0
        self.is_over = False

    @property
    def could_start_over(self) -> bool:
        """Nothing was done yet that would be done again, and it would be another request."""
        return self._answers == 0 and bool(self._request.memory)

    def hear(self, text: str) -> str:
        """Take a piece of the model's words, and give it as it is to be passed on."""
        piece = APART + text if self._said and not self._text else text
        self._said += piece
        self._text += text
        return piece

    def take(self, answer: ModelResponse) -> None:
        """Take the model's message, once it is complete."""
        self._answer = answer
        self._answers += 1

    async def go_on(self) -> AsyncGenerator[EngineEvent, None]:
        """Do what follows from the model's message."""
        answer, calls = take_calls(self._answer)
        text, self._text = self._text, ""
        usage = counting.usage(answer, self.messages, self.parameters)
        tokens = counting.session(usage, self.messages, self.parameters)
        may_go_on = await self._gate.pay(self._model, usage)
        if not (calls or self._said):
            raise EngineFailed("The model gave no answer.")
        if calls or text:
            yield self._remember(answer, tokens=tokens)
        if not calls:
            self.is_over = True
            wants_outcome = self._request.schema is not None
            yield TurnEnded(self._said, _outcome_in(text) if wants_outcome else None)
        elif self._is_outcome(calls):
            self.is_over = True
            yield self._remember(history.answer(calls[0].part, ACCEPTED))
            yield TurnEnded(self._said, _given(calls[0]))
        else:
            for call in calls:
                result = await self._call(call) if may_go_on else _NOT_MADE
                self.is_over = self.is_over or result.stop
                yield self._remember(history.answer(call.part, result.text, failed=result.failed))

    async def _call(self, call: Call) -> ToolResult:
        name = call.part.tool_name
        offer = self._offers.get(name)
        if name == OUTCOME_TOOL and self._request.schema is not None:
            return ToolResult(TOO_EARLY, failed=True)
        if offer is None:
            return ToolResult(f"There is no tool {name!r}.", failed=True)
        if call.arguments is None:
            wrong = f"{name} was not called: what you wrote is no JSON object: {call.written[:500]}"
            return ToolResult(wrong, failed=True)
        return await self._gate.call(offer, call.arguments)

    def _is_outcome(self, calls: Sequence[Call]) -> bool:
        wanted = self._request.schema is not None
        return wanted and [call.part.tool_name for call in calls] == [OUTCOME_TOOL]

    def _remember(self, message: ModelMessage, *, tokens: int | None = None) -> SessionEntries:
        self.messages.append(message)
        self._unremembered.append(message)
        entries = tuple(map(history.dump, self._unremembered))
        self._unremembered.clear()
        return SessionEntries(self._session_id, entries, tokens)


_NOT_MADE = ToolResult(NOT_MADE, failed=True, stop=True)


def _given(call: Call) -> object:
    """Give an outcome as it is; what cannot be read is for others to complain about."""
    return call.written if call.arguments is None else dict(call.arguments)


def _outcome_in(text: str) -> object:
    """Find an outcome that was said instead of given, as small models do; None: there is none."""
    bare = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    return read_object(bare)
