"""Test runs of tasks: the one question about everything that a test run would have asked for."""

from collections.abc import Mapping, Sequence
from typing import Any

from backburner.core import tool_policy
from backburner.core.conversation import Conversation
from backburner.core.ids import ConversationId
from backburner.core.question import NO, YES
from backburner.core.shown_call import show_call
from backburner.core.tool_policy import ALWAYS_HERE, ToolCall

#: Of one question: more would be approved without being read.
MAX_LISTED_CALLS = 20
MAX_LISTED_CHARS = 20_000

NOT_MADE = (
    "This is a test run, and this call needs the approval of the owner: it was not made. Continue"
    " without its result, and make the calls that you would make after it. The owner is asked about"
    " all of them when the run ends."
)
_MAY_I = (
    "May the task do this in its next runs? The test run made none of these calls. Calls may"
    " depend on earlier ones of the list, and be different once those are made."
)
PUT_BACK = (
    "\n[This is a test run: the user is not asked about these files, and they stay as they were."
    " Tell the user.]"
)


def select_calls(shown: Sequence[tuple[ToolCall, str]]) -> Sequence[tuple[ToolCall, str]]:
    """Select the first calls that one question can show, each with what would come of it."""
    chars = 0
    for number, (call, preview) in enumerate(shown[:MAX_LISTED_CALLS]):
        chars += len(show_call(call)) + len(preview)
        if chars > MAX_LISTED_CHARS and number:
            return shown[:number]
    return shown[:MAX_LISTED_CALLS]


def describe_list(
    listed: Sequence[tuple[ToolCall, str]], *, unlisted: int, puts_files_back: bool
) -> str:
    """Describe all calls that a test run did not make, for the question about them."""
    texts = [_MAY_I]
    for number, (call, preview) in enumerate(listed, start=1):
        texts += [f"{number}. {show_call(call)}", *filter(None, (preview,))]
    once = [str(number) for number, (call, _) in enumerate(listed, start=1) if not _lasts(call)]
    if 0 < len(once) < len(listed):
        texts.append(f"{ALWAYS_HERE!r} allows these only once: {', '.join(once)}.")
    if unlisted:
        texts.append(f"Not listed: {unlisted:,} more. Each will ask when it is to be made.")
    if puts_files_back:
        texts.append(
            "Files that other programs obey were changed, and put back. The same change asks again."
        )
    return "\n".join(texts)


def list_options(listed: Sequence[tuple[ToolCall, str]]) -> tuple[str, ...]:
    """List the answers: "always here" if it can be said of at least one call."""
    lasting = any(_lasts(call) for call, _ in listed)
    return (YES, ALWAYS_HERE, NO) if lasting else (YES, NO)


def list_binding(
    listed: Sequence[tuple[ToolCall, str]], task_id: ConversationId
) -> Mapping[str, Any]:
    """Record which calls the question is for, and the task that gets the grants."""
    binding = tool_policy.approval_binding(call for call, _ in listed)
    return {**binding, tool_policy.GRANTS_TO_TASK: task_id}


def is_same_work(task: Conversation, job: Conversation) -> bool:
    """Return whether a task still has the prompt, tools, folder and connections of its test run."""
    context = task.state.context
    texts = {name: str(context.get(name, "")) for name in ("prompt", "description")}
    same_place = (job.folder_path, job.connections) == (task.folder_path, task.connections)
    return same_place and (job.state.context, job.tools) == ({**context, **texts}, task.tools)


def _lasts(call: ToolCall) -> bool:
    return ALWAYS_HERE in tool_policy.approval_options([call])
