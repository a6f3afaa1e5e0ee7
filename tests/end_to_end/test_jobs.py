"""A chat hands out two jobs to others, waits for them, and reports."""

import re

from support.faults.outside import Outside
from support.model_api import CallTool, GiveOutcome, ModelApi, ModelRequest, Reply, Say
from support.programs.real_workers import RealWorkers
from support.requirements import requirement
from support.servers.model_threads import newest

from backburner.core.conversation import EndedAs

FRUIT = ("apple", "pear")


def look_for_fruit(heard: ModelRequest) -> Reply:
    """Be an agent that has others look into files, and waits for them."""
    last = newest(heard)
    if heard.wants_outcome:
        return _be_a_job(last)
    if "You waited" in last:
        return [
            Say(f"They found {' and '.join(re.findall(r'It is a (?:red|green) (.*)!', last))}.")
        ]
    begun = re.findall(r"Started (\S+) ", str(heard.body["messages"]))
    if len(begun) < len(FRUIT):
        name = FRUIT[len(begun)]
        asked = {"description": f"The {name}", "prompt": f"What is in {name}.txt?"}
        return [CallTool("background_task", asked)]
    return [CallTool("background_block", {"task_ids": begun})]


def _be_a_job(last: str) -> Reply:
    found = re.search(r"a (red|green) (\w+)", last)
    if found:
        return [GiveOutcome({"complete": True, "message": f"It is {found[0]}!"})]
    (name,) = re.findall(r"What is in (\w+).txt", last)
    return [CallTool("read_file", {"path": f"{name}.txt"})]


@requirement("C-launch", "C-block", "C-completed")
def test_a_chat_starts_two_jobs_waits_for_them_and_reports(
    workers: RealWorkers, model: ModelApi, outside: Outside
) -> None:
    model.otherwise = look_for_fruit
    (workers.workspace() / "apple.txt").write_text("a red apple\n")
    (workers.workspace() / "pear.txt").write_text("a green pear\n")
    workers.start()
    chat = outside.chat()

    outside.tell(chat, "Have somebody look at the fruit, both kinds.")

    outside.wait_for(lambda: any(text.startswith("They found") for text in outside.said(chat)))
    assert sorted(re.findall("apple|pear", outside.said(chat)[-1])) == ["apple", "pear"]
    ((status, kind),) = outside.rows(
        "SELECT r.status, r.kind FROM runs r JOIN conversations c ON c.id = r.conversation_id"
        " WHERE c.kind = 'chat'"
    )
    assert (status, kind) == ("success", "reply")
    jobs = outside.rows("SELECT title, ended_as FROM conversations WHERE kind = 'job'")
    ended = EndedAs.COMPLETED.value
    assert sorted(jobs) == [("The apple", ended), ("The pear", ended)]
    calls = outside.rows("SELECT tool, count(*) FROM tool_calls GROUP BY tool")
    assert dict(calls) == {"background_task": 2, "background_block": 1, "read_file": 2}
    assert outside.rows("SELECT count(*) FROM inbox WHERE served_by IS NULL") == [(0,)]
