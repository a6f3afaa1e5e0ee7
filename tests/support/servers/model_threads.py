"""The stand-in for a model in a thread of its own, for tests that wait for other processes."""

import asyncio
import re
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from support.model_api import ModelApi, ModelRequest

PATIENCE = 10.0


@contextmanager
def model_in_thread() -> Iterator[ModelApi]:
    """Run one; its scripts are called in that thread."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def do(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(PATIENCE)

    api = ModelApi()
    do(api.__aenter__())
    try:
        yield api
    finally:
        do(api.__aexit__(None, None, None))
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.close()


def newest(heard: ModelRequest) -> str:
    """Read what the model was told last: a prompt, or what a call gave."""
    text = _text(heard.body["messages"][-1]["content"])
    # Claude Code adds some words of its own, before and after.
    return re.sub("<system-reminder>.*?</system-reminder>", "", text, flags=re.DOTALL).strip()


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text") or _text(block.get("content", "")) for block in content)
