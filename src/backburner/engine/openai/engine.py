"""The engine: send a request to the model, stream its text, and repeat while it calls tools."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
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
from backburner.engine.openai.turn import OpenAITurn
from backburner.ports import EngineEvent, Gate, TextDelta, TurnRequest

#: Requests to the model in one turn; a model that needs more runs in circles.
MAX_STEPS = 100
CONNECT_TIMEOUT = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """A model, asked with the key of the settings or of a user."""

    model: OpenAIChatModel
    key: str = field(repr=False)


class OpenAIEngine:
    def __init__(
        self,
        *,
        model: str,
        address: str,
        key: str = "",
        sees_images: bool = False,
        stall: timedelta,
        max_steps: int = MAX_STEPS,
    ) -> None:
        """`stall`: the timeout for a silent server."""
        self._name = model
        self._key = key
        self._sees_images = sees_images
        self._server = urlsplit(address).netloc.rpartition("@")[2] or address
        self._max_steps = max_steps
        silence = stall.total_seconds()
        timeout = Timeout(silence, connect=min(silence, CONNECT_TIMEOUT.total_seconds()))
        self._address = address
        self._client = AsyncOpenAI(
            base_url=address,
            # The library requires one, even if the server does not.
            api_key=key or "none",
            max_retries=0,
            timeout=timeout,
            # Otherwise proxies would be taken from our environment.
            http_client=httpx2.AsyncClient(timeout=timeout, trust_env=False),
        )
        # These would be taken from there too, and would leak to other servers.
        self._client.organization = self._client.project = None
        self._profile = OpenAIModelProfile(
            # A stream that ends without a finish reason was cut.
            openai_chat_streaming_requires_finish_reason=True,
            openai_supports_strict_tool_definition=False,
        )
        self._model = self._make_model(self._client)

    async def close(self) -> None:
        await self._client.close()

    async def run(self, request: TurnRequest, gate: Gate) -> AsyncGenerator[EngineEvent, None]:
        check_address(self._address)
        turn = OpenAITurn(request, gate, self._name, sees_images=self._sees_images)
        access = ModelAccess(self._model, self._key)
        if request.own_key is not None:
            client = self._client.with_options(api_key=request.own_key)
            access = ModelAccess(self._make_model(client), request.own_key)
        for _ in range(self._max_steps):
            for part in (self._ask(turn, access), turn.act()):
                async with aclosing(part) as events:
                    async for event in events:
                        yield event
            if turn.is_over:
                return
        raise EngineFailed(f"The model did not finish within {self._max_steps} requests.")

    def _make_model(self, client: AsyncOpenAI) -> OpenAIChatModel:
        provider = OpenAICompatibleProvider("backburner", openai_client=client)
        return OpenAIChatModel(self._name, provider=provider, profile=self._profile)

    async def _ask(
        self, turn: OpenAITurn, access: ModelAccess
    ) -> AsyncGenerator[EngineEvent, None]:
        """Stream the next message of the model."""
        try:
            async with aclosing(self._stream(turn, access.model)) as events:
                async for event in events:
                    yield event
        except ERRORS as error:
            if is_rejected(error) and turn.drop_images():
                # The model may not see at all, or an image may be damaged.
                async with aclosing(self._ask(turn, access)) as events:
                    async for event in events:
                        yield event
                return
            if is_rejected(error) and turn.can_start_over:
                raise SessionGone(f"{self._server} rejected the stored session.") from None
            raise explain(error, model=self._name, server=self._server, key=access.key) from None

    async def _stream(
        self, turn: OpenAITurn, model: OpenAIChatModel
    ) -> AsyncGenerator[EngineEvent, None]:
        async with model.request_stream(turn.messages, None, turn.parameters) as stream:
            async with aclosing(_texts(stream)) as texts:
                async for text in texts:
                    yield TextDelta(turn.add_text(text))
            turn.add_response(stream.get())


async def _texts(stream: StreamedResponse) -> AsyncGenerator[str, None]:
    async for event in stream:
        match event:
            case PartStartEvent(part=TextPart(content=text)) if text:
                yield text
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
                yield text
            case _:
                pass
