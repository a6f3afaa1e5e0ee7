"""The state machine: one function for each thing that can happen to a conversation.

Each takes what is and what happened, and returns a `Step`: what now is, what to write down, and
whom to tell. Nothing here saves, sends, waits, or reads a clock. What cannot happen raises
`Conflict` and changes nothing.
"""

from backburner.core.transitions.answers import (
    HAPPENED,
    LEAVE,
    RAISE,
    REPEAT,
    SKIP,
    STOP,
    TOMORROW,
    TRY_AGAIN,
    answer,
    expire,
)
from backburner.core.transitions.by_others import (
    hear_predecessor,
    park,
    receive_event,
    receive_report,
    unpark,
)
from backburner.core.transitions.by_user import (
    archive,
    cancel,
    follow_up,
    pause,
    rename,
    reopen,
    resume,
    run_now,
    say,
    set_schedule,
)
from backburner.core.transitions.create import (
    TEST_RUN,
    Brief,
    propose,
    start_chat,
    start_discovery,
    start_job,
    start_task,
)
from backburner.core.transitions.edit import Terms, ask_anew, put_away, rework
from backburner.core.transitions.restore import restore
from backburner.core.transitions.runs import (
    MOST_AGAIN,
    MOST_UNATTENDED,
    Beginning,
    ask_owner,
    begin,
    crash,
    fail,
    fail_reply,
    finish,
    pass_over,
    reply,
)
from backburner.core.transitions.step import FollowerEvent, NewMessage, Report, Step, Stops

__all__ = [
    "HAPPENED",
    "LEAVE",
    "MOST_AGAIN",
    "MOST_UNATTENDED",
    "RAISE",
    "REPEAT",
    "SKIP",
    "STOP",
    "TEST_RUN",
    "TOMORROW",
    "TRY_AGAIN",
    "Beginning",
    "Brief",
    "FollowerEvent",
    "NewMessage",
    "Report",
    "Step",
    "Stops",
    "Terms",
    "answer",
    "archive",
    "ask_anew",
    "ask_owner",
    "begin",
    "cancel",
    "crash",
    "expire",
    "fail",
    "fail_reply",
    "finish",
    "follow_up",
    "hear_predecessor",
    "park",
    "pass_over",
    "pause",
    "propose",
    "put_away",
    "receive_event",
    "receive_report",
    "rename",
    "reopen",
    "reply",
    "restore",
    "resume",
    "rework",
    "run_now",
    "say",
    "set_schedule",
    "start_chat",
    "start_discovery",
    "start_job",
    "start_task",
    "unpark",
]
