"""`/api/conversations`, over HTTP and a real database."""

from typing import Any

from api_stage import Asker, ask, ask_as, client, clock, database, mate, set_up, stage
from requirements import requirement

from backburner.testing.stage import Stage

__all__ = ["ask", "ask_as", "client", "clock", "database", "mate", "set_up", "stage"]

HALF_HOUR = {"type": "interval", "every": 1800, "anchor": "2026-11-16T12:00:00Z"}
VERBS = ("pause", "resume", "run-now", "cancel", "archive", "reopen", "stop")


@requirement("A-api", "A-fields")
async def test_a_chat_shows_all_of_a_conversation(ask: Asker, stage: Stage) -> None:
    born = await ask.do("POST", "/api/conversations", {"message": "Watch CI, please."})

    shown = await ask.get(f"/api/conversations/{born['id']}")
    assert shown == born
    assert (shown["user_id"], shown["kind"], shown["status"]) == ("u_user", "chat", "active")
    assert shown["title"] == "Watch CI, please."
    assert (shown["schedule"], shown["next_run_at"], shown["next_times"]) == (None, None, [])
    empty: dict[str, Any] = {"context": {}, "step": "", "data": {}, "pending_question": None}
    assert shown["state"] == empty
    assert (shown["session"], shown["claude_session_id"]) == (None, None)
    assert shown["profile"] == "scripted"
    assert shown["created_at"].endswith("Z")
    assert shown["updated_at"].endswith("Z")
    await stage.work()
    assert (await ask.get(f"/api/conversations/{born['id']}/messages"))["items"]
