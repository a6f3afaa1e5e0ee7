"""Tools, calls and grants for tests of the tool policy."""

from backburner.core.question import Purpose, Question, QuestionType
from backburner.core.tool_policy import (
    Decision,
    Grant,
    GrantMatch,
    Tool,
    ToolCall,
    approval_binding,
    approval_options,
    decide,
    grants_given,
)
from support.stage import make
from support.stage.make import NOON

MAIL = Tool(server="mail", name="send", definition="d1")
RUN_COMMAND = Tool(
    server="backburner", name="run_command", definition="d2", grant_match=GrantMatch.COMMAND
)
FETCH_URL = Tool(
    server="backburner", name="fetch_url", definition="d3", grant_match=GrantMatch.HOST
)
READ = Tool(server="backburner", name="read_file", definition="d4", free=True)
SEND = ToolCall(MAIL, {"to": "ann@example.com", "copies": 2})


def command(line: object) -> ToolCall:
    return ToolCall(RUN_COMMAND, {"command": line})


def fetch(url: object) -> ToolCall:
    return ToolCall(FETCH_URL, {"url": url})


def asked_about(*calls: ToolCall) -> Question:
    return make.question(
        purpose=Purpose.APPROVAL,
        type=QuestionType.CHOICE,
        options=approval_options(calls),
        binds_to=approval_binding(calls),
    )


def granted(answer: str, *calls: ToolCall) -> tuple[Grant, ...]:
    return grants_given(asked_about(*calls), answer, now=NOON)


def judge(call: ToolCall, *grants: Grant) -> Decision:
    return decide(call, grants, allowed=None, in_doubt=False, now=NOON)
