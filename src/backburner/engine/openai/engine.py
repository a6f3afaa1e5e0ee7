"""The engine: a model is asked, its words are passed on, and again as long as it calls tools."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta
from urllib.parse import urlsplit

import httpx2
from openai import AsyncOpenAI, Timeout
from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
from pydantic_ai.models import StreamedResponse
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from backburner.core.errors import EngineFailed, SessionGone
from backburner.engine.addresses import check_address
from backburner.engine.openai.failures import ERRORS, explain, is_rejected
from backburner.engine.openai.turn import Turn
from backburner.ports import EngineEvent, Gate, TextDelta, TurnRequest

#: How often a model may be asked in one turn before it is said to run in circles.
MOST_STEPS = 100
CONNECT = timedelta(seconds=10)


class OpenAIEngine:
    def __init__(
        self,
        *,
        model: str,
        address: str,
        key: str = "",
        stall: timedelta,
        most_steps: int = MOST_STEPS,
    ) -> None:
        """Set up a model. `stall`: how long its server may be silent."""
        self._name = model
        self._key = key
        self._server = urlsplit(address).netloc.rpartition("@")[2] or address
        self._most_steps = most_steps
        silence = stall.total_seconds()
        timeout = Timeout(silence, connect=min(silence, CONNECT.total_seconds()))
        self._address = address
        self._client = AsyncOpenAI(
            base_url=address,
            # The library wants one, also where nobody asks for it.
            api_key=key or "none",
            max_retries=0,
            timeout=timeout,
            # Without it, proxies would be taken from our environment.
            http_client=httpx2.AsyncClient(timeout=timeout, trust_env=False),
        )
        # They would be taken from there too, and are nothing to other people's servers.
        self._client.organization = self._client.project = None
        profile = OpenAIModelProfile(
            # A stream that ends without saying so was cut.
            openai_chat_streaming_requires_finish_reason=True,
            openai_supports_strict_tool_definition=False,
        )
        provider = OpenAICompatibleProvider("backburner", openai_client=self._client)
        self._model = OpenAIChatModel(model, provider=provider, profile=profile)

    async def close(self) -> None:
        await self._client.close()

    async def run(self, request: TurnRequest, gate: Gate) -> AsyncGenerator[EngineEvent, None]:
        check_address(self._address)
        turn = Turn(request, gate, self._name)
        for _ in range(self._most_steps):
            for part in (self._ask(turn), turn.go_on()):
                async with aclosing(part) as events:
                    async for event in events:
                        yield event
            if turn.is_over:
                return
        raise EngineFailed(f"The model was asked {self._most_steps} times and came to no end.")

    async def _ask(self, turn: Turn) -> AsyncGenerator[EngineEvent, None]:
        """Let the model say its next message."""
        try:
            async with self._model.request_stream(turn.messages, None, turn.parameters) as stream:
                async with aclosing(_words(stream)) as words:
                    async for text in words:
                        yield TextDelta(turn.hear(text))
                turn.take(stream.get())
        except ERRORS as error:
            if is_rejected(error) and turn.could_start_over:
                raise SessionGone(
                    f"{self._server} does not take what the agent remembers."
                ) from None
            raise explain(error, model=self._name, server=self._server, key=self._key) from None


async def _words(stream: StreamedResponse) -> AsyncGenerator[str, None]:
    async for event in stream:
        match event:
            case PartStartEvent(part=TextPart(content=text)) if text:
                yield text
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
                yield text
            case _:
                pass
