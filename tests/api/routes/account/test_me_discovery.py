"""`/api/me` on a server where agents may not look for work by themselves."""

from support.requirements import requirement
from support.stage.api_stage import Asker


@requirement("B-discovery")
async def test_nobody_switches_on_what_is_off_for_everybody(ask: Asker) -> None:
    refused = await ask("PUT", "/api/me", {"discovery": True, "zone": "Europe/Berlin"})

    assert refused.status_code == 409
    assert "disabled on this server" in refused.json()["detail"]
    assert "discovery_enabled" in refused.json()["hint"]
    shown = await ask.do("PUT", "/api/me", {"discovery": False})
    assert (shown["discovery"], shown["zone"]) == (False, "UTC")


async def test_a_project_is_for_discovery_that_is_turned_on(ask: Asker) -> None:
    for body in ({"discovery_repository": "ada/app"}, {"discovery_folder": "app"}):
        refused = await ask("PUT", "/api/me", body)
        assert refused.status_code == 400
        assert "discovery" in refused.json()["detail"]
