"""The state machine: one function for each thing that can happen to a conversation.

Each takes what is and what happened, and returns a `Step`: what now is, what to write down, and
whom to tell. Nothing here saves, sends, waits, or reads a clock. What cannot happen raises
`Conflict` and changes nothing.
"""

from backburner.core.transitions.answers import (
    HAPPENED,
    LEAVE,
    RAISE_ALLOWANCE,
    REPEAT,
    SKIP,
    STOP,
    TRY_AGAIN,
    WAIT_UNTIL_TOMORROW,
    answer,
    expire,
)
from backburner.core.transitions.by_others import (
    apply_follower_event,
    pause_for_allowance,
    receive_event,
    receive_report,
    resume_after_allowance,
)
from backburner.core.transitions.by_user import (
    archive,
    cancel,
    follow_up,
    pause,
    receive_message,
    rename,
    reopen,
    resume,
    run_now,
    set_schedule,
)
from backburner.core.transitions.create import (
    TEST_RUN_BATCH,
    Brief,
    propose,
    start_chat,
    start_discovery,
    start_job,
    start_task,
)
from backburner.core.transitions.edit import Terms, apply_change, cancel_and_archive, edit_terms
from backburner.core.transitions.restore import restore
from backburner.core.transitions.runs import (
    MAX_CONTINUES,
    MAX_UNATTENDED_REPLIES,
    RunStart,
    ask_owner,
    begin,
    crash,
    fail,
    fail_reply,
    finish,
    reply,
    skip_discovery_slot,
)
from backburner.core.transitions.step import FollowerEvent, NewMessage, Report, Step, Stops

__all__ = [
    "HAPPENED",
    "LEAVE",
    "MAX_CONTINUES",
    "MAX_UNATTENDED_REPLIES",
    "RAISE_ALLOWANCE",
    "REPEAT",
    "SKIP",
    "STOP",
    "TEST_RUN_BATCH",
    "TRY_AGAIN",
    "WAIT_UNTIL_TOMORROW",
    "Brief",
    "FollowerEvent",
    "NewMessage",
    "Report",
    "RunStart",
    "Step",
    "Stops",
    "Terms",
    "answer",
    "apply_change",
    "apply_follower_event",
    "archive",
    "ask_owner",
    "begin",
    "cancel",
    "cancel_and_archive",
    "crash",
    "edit_terms",
    "expire",
    "fail",
    "fail_reply",
    "finish",
    "follow_up",
    "pause",
    "pause_for_allowance",
    "propose",
    "receive_event",
    "receive_message",
    "receive_report",
    "rename",
    "reopen",
    "reply",
    "restore",
    "resume",
    "resume_after_allowance",
    "run_now",
    "set_schedule",
    "skip_discovery_slot",
    "start_chat",
    "start_discovery",
    "start_job",
    "start_task",
]
