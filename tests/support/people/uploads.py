"""Files that people upload, and messages that have them."""

from typing import Any

from support.stage.api_stage import Asker

BYTES_TYPE = {"content-type": "application/octet-stream"}
PATH = "/api/files"


async def upload(ask: Asker, data: bytes, name: str = "") -> dict[str, Any]:
    """Upload a file; return what a message names it by, and its facts."""
    answer = await ask("POST", PATH, content=data, headers=BYTES_TYPE, params={"name": name})
    assert answer.status_code == 201, answer.text
    uploaded: dict[str, Any] = answer.json()
    return uploaded


def named(uploaded: dict[str, Any]) -> dict[str, str]:
    return {"digest": uploaded["digest"], "name": uploaded["name"]}
