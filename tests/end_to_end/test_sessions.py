"""Chat and background work are one agent session, whichever process and folder each is in."""

import signal
from collections.abc import Sequence
from typing import Any

from support.faults.outside import Outside
from support.model_api import CallTool, GiveOutcome, ModelApi, ModelRequest, Reply, Say
from support.programs.real_workers import RealWorkers
from support.requirements import requirement
from support.servers.model_threads import newest

from backburner.core.conversation import Conversation, Status
from backburner.runs.prepare import SESSION_LOST

LOOK = {"what": "Find out which fruit it is, in fruit.txt.", "when": "now"}


def look_for_fruit(heard: ModelRequest) -> Reply:
    """Be an agent that looks into a file in the background, and says nothing of it."""
    last = newest(heard)
    if heard.wants_outcome:
        found = "quince" in last
        done = GiveOutcome({"complete": True, "state_update": {"looked": True}})
        return [done] if found else [CallTool("read_file", {"path": "fruit.txt"})]
    if "Remember plum" in last:
        return [Say("I keep that in mind."), CallTool("schedule_work", LOOK)]
    return [Say("Just as you say.")]


@requirement("A-session-resumed", "A-session-stored")
def test_chat_and_work_in_two_processes_know_what_the_other_did(
    workers: RealWorkers, model: ModelApi, outside: Outside
) -> None:
    model.otherwise = look_for_fruit
    (workers.workspace("two") / "fruit.txt").write_text("It is quince.\n")
    workers.start("one", enabled=False)
    chat = outside.chat()
    outside.tell(chat, "Remember plum, and look for the fruit.")
    outside.wait_for(lambda: outside.said(chat))
    assert outside.said(chat) == ["I keep that in mind.\n\nJust as you say."]
    begun, asked = outside.load(chat), len(model.requests)
    assert begun.status is Status.BACKGROUND

    two = workers.start("two")
    outside.wait_for(lambda: outside.load(chat).ended_as)
    two.end(signal.SIGTERM)

    in_work = model.requests[asked]
    assert ("mcp__backburner__schedule_work", LOOK) in calls_in(in_work)
    assert in_work.holds("Remember plum")
    assert _session(outside, chat) == begun.session.id  # type: ignore[union-attr]

    asked = len(model.requests)
    outside.tell(chat, "And now?")
    outside.wait_for(lambda: outside.said(chat)[-1] == "Just as you say.")

    (in_chat,) = model.requests[asked:]
    assert in_chat.holds("It is quince.")
    assert in_chat.holds("I keep that in mind.")
    assert _session(outside, chat) == begun.session.id  # type: ignore[union-attr]
    # On a machine that is starved, one may be attempted again.
    runs = outside.rows(
        "SELECT kind, worker FROM runs WHERE status = 'success' ORDER BY started_at"
    )
    assert [kind for kind, _ in runs] == ["reply", "background", "reply"]
    assert runs[0][1] == runs[2][1] != runs[1][1]


def ask_and_end(heard: ModelRequest) -> Reply:
    """Be an agent that asks in the middle of its work."""
    last = newest(heard)
    if "The user answered" in last:
        return [GiveOutcome({"complete": True, "message": "Read to the end."})]
    if "chapter" in last and heard.wants_outcome and "# Progress" not in last:
        question = {"type": "confirmation", "prompt": "Shall I read on?"}
        known = {"page": 7}
        outcome = {"needs_input": True, "message": "A chapter.", "question": question}
        return [GiveOutcome({**outcome, "state_update": known, "next_step": "At page 7."})]
    return [CallTool("read_file", {"path": "book.txt"})]


@requirement("A-session-expired")
def test_work_whose_transcript_is_gone_goes_on_from_its_state(
    workers: RealWorkers, model: ModelApi, outside: Outside
) -> None:
    model.otherwise = ask_and_end
    (workers.workspace() / "book.txt").write_text("chapter one\n")
    workers.start()
    task = outside.task(prompt="Read the book.", reports_to=(), may_send=False)
    question = outside.question(task)
    before, asked = _session(outside, task), len(model.requests)

    outside.delete("DELETE FROM session_entries")
    outside.answer(task, question, "yes")

    outside.wait_for(lambda: outside.load(task).ended_as)
    request = model.requests[asked]
    assert calls_in(request) == []
    assert all(map(request.holds, ("Read the book.", '"page":7', "At page 7.")))
    assert outside.said(task)[-2:] == [SESSION_LOST, "Read to the end."]
    roles = outside.rows("SELECT role FROM messages WHERE content = :said", said=SESSION_LOST)
    assert roles == [("system",)]
    assert _session(outside, task) not in (None, before)
    assert outside.rows("SELECT DISTINCT status FROM runs") == [("success",)]


def calls_in(heard: ModelRequest) -> Sequence[tuple[str, Any]]:
    """Find the calls that the model is told it has made."""
    contents = [message["content"] for message in heard.body["messages"]]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    return [(one["name"], one["input"]) for one in blocks if one["type"] == "tool_use"]


def _session(outside: Outside, conversation: Conversation) -> str | None:
    session = outside.load(conversation).session
    return None if session is None else session.id
