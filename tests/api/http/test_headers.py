"""Headers of every response."""

import httpx2
import pytest
from support.stage.api_stage import Asker


@pytest.mark.parametrize("path", ["/api/me", "/api/export", "/api/nowhere", "/health"])
async def test_no_response_is_taken_for_a_page_or_into_one_of_others(
    ask: Asker, client: httpx2.AsyncClient, path: str
) -> None:
    for answer in (await ask("GET", path), await client.get(path)):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        # Nothing of a user stays on the disk of a browser.
        assert answer.headers["cache-control"] == "no-store"
