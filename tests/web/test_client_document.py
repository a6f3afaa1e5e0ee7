"""Backburner at a public address: an authorization server reads who it is, and believes it."""

import os
import socket
import tomllib
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.oauth_peer.peer import oauth_peer
from support.programs.programs import Start
from support.servers.certificates import make_certificate

from backburner.data_folder import CLIENT_FILE
from backburner.ports.oauth import issuer_key


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@pytest.fixture
def address(start: Start, tmp_path: Path) -> str:
    port = free_port()
    public = f"https://localhost:{port}"
    env = {
        **os.environ,
        **make_certificate(tmp_path),
        "BACKBURNER_PUBLIC_URL": public,
        "BACKBURNER_PRIVATE_NETWORKS": "127.0.0.1/32",
    }
    start("up", "--port", str(port), "--data", tmp_path / "data", env=env).wait_until_ready()
    return public


def test_an_authorization_server_reads_our_document_instead_of_registering_us(
    address: str, start: Start, tmp_path: Path
) -> None:
    token = tomllib.loads((tmp_path / "data" / CLIENT_FILE).read_text())["token"]
    headers = {"authorization": f"Bearer {token}"}
    with (
        oauth_peer(start) as peer,
        httpx2.Client(base_url=address, headers=headers, verify=False, timeout=20) as client,
    ):
        peer.switch(documents=True)

        def post(path: str, body: dict[str, Any]) -> Any:
            response = client.post(path, json=body)
            assert response.is_success, response.text
            return response.json()

        added = post("/api/connections", {"url": peer.server, "name": "mail"})["connection"]
        begun = post(f"/api/connections/{added['id']}/sign-in", {})
        final = peer.approve(begun["url"], "bob")
        end = post("/api/connections/finish-sign-in", {"address": final, "secret": begun["secret"]})

        key = issuer_key(peer.issuer)
        assert final.startswith(f"{address}/oauth/from/{key}?")
        assert end["check"]["connection"]["state"] == "ready"
        assert peer.count("registered") == 0
        (form,) = peer.record()["token_requests"]
        assert form["client_id"] == f"{address}/oauth/client/{key}.json"
