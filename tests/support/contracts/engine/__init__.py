"""The contract of engines: one function for each promise.

Each takes a `Subject`, and raises if the promise is not kept. Those of `WITH_MODEL` are for engines
with a model, which they script. The others run with any engine.
"""

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from types import ModuleType
from typing import Any

from support.contracts.engine import (
    any_engine,
    calling,
    failing,
    outcomes,
    paying,
    sessions,
    stopping,
    talking,
)
from support.contracts.engine.harness import ModelSubject, Subject

Promise = Callable[[Any], Awaitable[None]]


def _promises(*modules: ModuleType) -> dict[str, Promise]:
    """Collect every public function of some modules, by its name."""
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if iscoroutinefunction(value)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    }


#: Take a `Subject`.
OF_ANY_ENGINE = _promises(any_engine)
#: Take a `ModelSubject`.
WITH_MODEL = _promises(talking, sessions, calling, outcomes, stopping, failing, paying)

__all__ = ["OF_ANY_ENGINE", "WITH_MODEL", "ModelSubject", "Promise", "Subject"]
