"""What an engine promises, whatever is behind it: one function for each promise.

Each takes a `Subject`, and raises where the promise is not kept. Those of `WITH_MODEL` are for an
engine that works with a model: they script it. The others leave the model to itself.
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
from support.contracts.engine.trial import ModelSubject, Subject

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
