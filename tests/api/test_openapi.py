"""The OpenAPI document: complete, readable, and public."""

import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from fastapi.openapi.utils import get_openapi
from support.stage.api_stage import Asker

#: Paths for callers who are not signed in.
OPEN = re.compile(r"/health|/ready|/api/sign-in|/api/invitations/accept|/api/password/reset")


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    return {}


@pytest.fixture
async def described(client: httpx2.AsyncClient, kept: dict[str, Any]) -> dict[str, Any]:
    """Ask for the document once: it takes a second to make."""
    if not kept:
        answer = await client.get("/api/openapi.json")
        assert answer.status_code == 200
        kept |= answer.json()
    return kept


def operations(described: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (path, method, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
        if not OPEN.fullmatch(path)
    ]


async def test_every_operation_has_a_name_a_summary_and_a_tag(described: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations(described)]

    assert len(set(names)) == len(names)
    assert {"list_conversations", "send_message", "pause_conversation", "get_me"} <= set(names)
    for path, method, operation in operations(described):
        assert re.fullmatch(r"[a-z]+(_[a-z]+)+", operation["operationId"]), (method, path)
        assert operation["summary"], (method, path)
        assert operation["tags"], (method, path)


async def test_every_operation_says_how_it_may_be_refused(described: dict[str, Any]) -> None:
    for path, method, operation in operations(described):
        told = set(operation["responses"])
        needed = {"400", "401", "403", "422", "503"}
        if "_id}" in path:
            needed.add("404")
        if "requestBody" in operation:
            needed |= {"408", "413"}
        assert needed <= told, (method, path, needed - told)
        for status in needed:
            content = operation["responses"][status]["content"]
            assert list(content) == ["application/problem+json"], (method, path, status)
            assert content["application/problem+json"]["schema"]["$ref"].endswith("/Problem")


async def test_generators_learn_where_the_server_is_and_how_to_sign_in(
    described: dict[str, Any],
) -> None:
    schemes = described["components"]["securitySchemes"]
    assert described["servers"] == [{"url": "/"}]
    assert schemes["token"] == {"type": "http", "scheme": "bearer"}
    assert {one["in"] for name, one in schemes.items() if name != "token"} == {"cookie", "header"}
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            ways: list[Any] = (
                [] if OPEN.fullmatch(path) else [{"token": []}, {"cookie": [], "page": []}]
            )
            if path == "/api/downloads/{item}/{secret}":
                # A browser that follows a link sends its cookie alone.
                ways = [{"token": []}, {"cookie": []}]
            assert operation["security"] == ways, (method, path)


async def test_only_media_types_that_generators_know_are_used(described: dict[str, Any]) -> None:
    used = {
        media_type
        for _, _, operation in operations(described)
        for response in operation["responses"].values()
        for media_type in response.get("content", {})
    }

    assert used <= {
        *("application/json", "application/problem+json", "text/event-stream", "text/plain"),
        "application/octet-stream",
    }


async def test_component_names_are_unique_and_leak_nothing_of_the_code(ask: Asker) -> None:
    document = await ask.get("/api/openapi.json")
    generated = get_openapi(title="", version="", routes=ask.api.routes)["components"]["schemas"]
    names = set(document["components"]["schemas"])

    # One public name for each generated one, and the problem details.
    assert len(names) == len(generated) + 1
    assert [name for name in names if not re.fullmatch(r"([A-Z][a-z]+)+", name)] == []
    assert [name for name in names if re.search(r"(Out|Body|In)$|^Page|Backburner", name)] == [
        "SignIn"
    ]
    assert {"Conversation", "Task", "NewTask", "TaskChanges", "TaskPage", "Problem"} <= names
    assert set(references(document)) == {f"#/components/schemas/{name}" for name in names}


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for part in node.values():
            yield from references(part)
    elif isinstance(node, list):
        for part in node:
            yield from references(part)


async def test_every_list_is_turned_in_the_same_way(described: dict[str, Any]) -> None:
    ways = dict[str, Any]()
    for path, _, operation in operations(described):
        parameters = {one["name"]: one for one in operation.get("parameters", ())}
        if parameters.keys() & {"cursor", "limit"}:
            ways[path] = (parameters.get("limit"), parameters.get("cursor"))

    assert {"/api/conversations", "/api/tokens", "/api/sessions", "/api/users"} <= set(ways)
    assert [path for path, way in ways.items() if way != ways["/api/conversations"]] == []


async def test_every_post_that_can_be_repeated_says_so(described: dict[str, Any]) -> None:
    for path, method, operation in operations(described):
        named = {one["name"] for one in operation.get("parameters", ())}
        if method != "post":
            assert "Idempotency-Key" not in named, path
        elif "Idempotency-Key" in named:
            assert "409" in operation["responses"], path
    assert "Idempotency-Key" in {
        one["name"] for one in described["paths"]["/api/conversations"]["post"]["parameters"]
    }


async def test_whatever_goes_in_or_comes_out_has_an_example(described: dict[str, Any]) -> None:
    schemas = described["components"]["schemas"]
    used = set[str]()
    for _, _, operation in operations(described):
        parts = [operation.get("requestBody", {}), operation["responses"].get("200", {})]
        parts += [operation["responses"].get("201", {}), operation["responses"].get("202", {})]
        for part in parts:
            for content in part.get("content", {}).values():
                reference = content.get("schema", {}).get("$ref", "")
                if reference and not reference.endswith("Page"):
                    used.add(reference.split("/")[-1])

    assert used
    assert {name for name in used if "example" not in schemas[name]} == set()
