"""Something said in a chat goes on in the background, asks, and comes to its end."""

from support.faults.outside import Outside
from support.model_api import CallTool, GiveOutcome, ModelApi, ModelRequest, Reply, Say
from support.programs.real_workers import RealWorkers
from support.requirements import requirement
from support.servers.model_threads import newest

from backburner.core.conversation import EndedAs, Status
from backburner.core.question import QuestionType

WATCH = {"what": "Read notes.txt and tell the user when it changes.", "when": "every 2 seconds"}
CHANGED = {
    "needs_input": True,
    "message": "Somebody wrote milk into notes.txt.",
    "question": {"type": "input", "prompt": "Shall I go on watching?"},
    "state_update": {"seen": "milk"},
}
ENOUGH = {"complete": True, "final": True, "message": "I no longer watch notes.txt."}


def watch_notes(heard: ModelRequest) -> Reply:
    """Be an agent that watches a file."""
    last = newest(heard)
    if not heard.wants_outcome:
        arranged = "Scheduled as the work of this conversation" in last
        return [Say(f"I do. {last}")] if arranged else [CallTool("schedule_work", WATCH)]
    if "The user answered: no, thank you" in last:
        return [GiveOutcome(ENOUGH)]
    if "eggs" not in last:
        return [CallTool("read_file", {"path": "notes.txt"})]
    if "milk" in last:
        return [GiveOutcome(CHANGED)]
    return [GiveOutcome({"complete": True, "result": "eggs"})]


@requirement("A-from-chat", "Z-ask", "A-complete-cron")
def test_what_is_asked_for_in_a_chat_is_watched_asked_about_and_ended(
    workers: RealWorkers, model: ModelApi, outside: Outside
) -> None:
    model.otherwise = watch_notes
    notes = workers.workspace() / "notes.txt"
    notes.write_text("eggs\n")
    workers.start()
    chat = outside.chat()

    outside.tell(chat, "Please watch notes.txt.")

    (reply,) = outside.wait_for(lambda: outside.said(chat))
    assert reply.startswith(
        "I do. Scheduled as the work of this conversation, every 2 seconds. Next: "
    )
    assert reply.endswith("UTC. It is active.")
    found = outside.load(chat)
    assert found.status is Status.BACKGROUND
    assert found.state.context["prompt"] == WATCH["what"]
    outside.wait_for(lambda: outside.load(chat).run_count >= 1)
    assert outside.said(chat) == [reply]

    notes.write_text("eggs\nmilk\n")

    question = outside.question(chat)
    assert (question.type, question.prompt) == (QuestionType.INPUT, "Shall I go on watching?")
    waiting = outside.load(chat)
    assert waiting.status is Status.WAITING_INPUT
    assert waiting.state.data == {"seen": "milk"}

    outside.answer(chat, question, "no, thank you")

    outside.wait_for(lambda: outside.load(chat).ended_as)
    done = outside.load(chat)
    assert (done.status, done.ended_as, done.schedule) == (Status.ACTIVE, EndedAs.COMPLETED, None)
    assert outside.said(chat)[-1] == ENOUGH["message"]
    _assert_history(outside, done.run_count)


def _assert_history(outside: Outside, count: int) -> None:
    """See that each run is written down, with what it did and what it took."""
    runs = outside.rows(
        "SELECT kind, status, tokens > 0 FROM runs"
        # A slot that came while the run before was still under way.
        " WHERE skip_reason IS NULL ORDER BY started_at, id"
    )
    assert runs == [("reply", "success", True)] + [("background", "success", True)] * count
    assert count >= 3
    calls = outside.rows("SELECT tool, state, count(*) FROM tool_calls GROUP BY tool, state")
    assert sorted(calls) == [
        ("read_file", "done", count - 1),
        ("schedule_work", "done", 1),
    ]
