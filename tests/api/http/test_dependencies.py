"""Endpoints and what they depend on."""

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from fastapi import APIRouter
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from backburner.api import routes


def test_no_endpoint_nor_dependency_is_called_in_a_thread() -> None:
    """FastAPI does that with plain functions: one more wait, for a thread and the interpreter."""
    called = [call for route in _routes() for call in _calls(route.dependant)]

    assert len(called) > 100
    assert [call for call in called if not _is_coroutine(call)] == []


def _routes() -> Iterator[APIRoute]:
    for module in pkgutil.iter_modules(routes.__path__, f"{routes.__name__}."):
        router = getattr(import_module(module.name), "router", APIRouter())
        yield from (route for route in router.routes if isinstance(route, APIRoute))


def _calls(dependant: Dependant) -> Iterator[Any]:
    yield dependant.call
    for dependency in dependant.dependencies:
        yield from _calls(dependency)


def _is_coroutine(call: Any) -> bool:
    return inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call)
