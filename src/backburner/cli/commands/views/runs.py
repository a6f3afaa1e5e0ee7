"""`backburner runs`: what was done, how it ended, and what it cost."""

from collections.abc import Mapping
from typing import Any

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.commands.account.me import format_amount
from backburner.cli.commands.conversations import describe_result, messages_by_run
from backburner.cli.commands.work.files import describe_file
from backburner.cli.output import (
    local_time,
    print_fields,
    print_items,
    print_json,
    print_table,
    printable,
    short_id,
    truncate,
)
from backburner.cli.server_options import json_option, limit_option, with_server
from backburner.core.tool_policy import OWN_SERVER

#: The lists that are shown without a conversation, in this order.
_LISTS = ("running", "queued", "ended")


@click.command("runs")
@click.argument("conversation", required=False)
@click.argument("run", required=False)
@click.option("--stats", is_flag=True, help="Compare the last 20 runs of the conversation.")
@click.option("--prompt", "shows_prompt", is_flag=True, help="Show what the run was told.")
@limit_option(20)
@json_option
@with_server
def runs(
    server: Server,
    *,
    conversation: str | None,
    run: str | None,
    stats: bool,
    shows_prompt: bool,
    limit: int,
    as_json: bool,
) -> None:
    """List the last runs, or show one.

    Without CONVERSATION, those of all conversations are listed: those in progress first. It is a
    title, an id, or the start of an id; RUN is an id, or the start of it. The full id of a run is
    enough. A single run is shown with what started it, its steps and its cost.
    """
    if conversation is None:
        if stats or shows_prompt:
            raise click.UsageError("--stats needs CONVERSATION, and --prompt needs RUN.")
        _list_all(server, limit=limit, as_json=as_json)
    elif run is not None or _is_run_id(conversation):
        if stats:
            raise click.UsageError("--stats is about a conversation: leave out RUN.")
        run_id = run or conversation
        if not _is_run_id(run_id):
            place = id_prefix.find_conversation(server, conversation)
            run_id = id_prefix.find_run(server, place, run_id)
        _show(server, server.get(f"/api/runs/{run_id}"), as_json=as_json, prompts=shows_prompt)
    else:
        if shows_prompt:
            raise click.UsageError("--prompt needs RUN.")
        conversation_id = id_prefix.find_conversation(server, conversation)
        if stats:
            _show_stats(server, conversation_id, as_json=as_json)
        else:
            _list(server, conversation_id, limit=limit, as_json=as_json)


def _is_run_id(text: str) -> bool:
    return text.startswith("r_") and id_prefix.is_full_id(text)


def _list_all(server: Server, *, limit: int, as_json: bool) -> None:
    items = list[Any]()
    for status in _LISTS:
        if len(items) < limit:
            items += server.items("/api/runs", limit=limit - len(items), status=status)
    rows = [
        {
            "ID": short_id(item["id"]),
            "CONVERSATION": truncate(item["title"], 30),
            "STATUS": item["status"],
            "STARTED": local_time(item["started_at"]),
            "TOOK": describe_seconds(item["worked_seconds"]),
            "COST": format_cost(item["spent"]),
            "RESULT": truncate(_describe_row(item)),
        }
        for item in items
    ]
    print_items(items, rows, empty="No runs yet.", as_json=as_json)


def _describe_row(item: Any) -> str:
    if item["running"]:
        return str((item["progress"] or {}).get("text") or item["running"]["doing"])
    return str(item["waits_for"] or describe_result(item, {}))


def _list(server: Server, conversation_id: str, *, limit: int, as_json: bool) -> None:
    items = list(server.items(f"/api/conversations/{conversation_id}/runs", limit=limit))
    messages = messages_by_run(server, conversation_id)
    rows = [
        {
            "ID": short_id(item["id"]),
            "KIND": item["kind"],
            "STATUS": item["status"],
            "STARTED": local_time(item["started_at"]),
            "RESULT": truncate(describe_result(item, messages)),
        }
        for item in items
    ]
    print_items(items, rows, empty="No runs yet.", as_json=as_json)


def _show(server: Server, run: Any, *, as_json: bool, prompts: bool) -> None:
    if as_json:
        print_json(run)
        return
    if prompts:
        click.echo("\n\n".join(map(printable, run["prompts"])) or "It is not kept.")
        return
    show_run(run, messages_by_run(server, run["conversation_id"]))


def show_run(run: Any, messages: Mapping[str, str]) -> None:
    outcome, failed = run["outcome"], run["status"] == "failure"
    print_fields(
        {
            **{name: run[name] for name in ("id", "kind", "status")},
            "conversation": run["title"],
            "cause": "; ".join(cause["in_words"] for cause in run["causes"]),
            "tokens": run["tokens"],
            "profile": run["profile"],
            "models": ", ".join(run["models"]),
            "started": local_time(run["started_at"]),
            "ended": local_time(run["ended_at"]),
            "took": describe_seconds(run["worked_seconds"]),
            "cost": format_cost(run["cost"]),
            "tries": _count_tries(run["tries"]),
            "result": describe_result(run, messages) or outcome["text"],
            "to do": outcome["what_to_do"] if failed else "",
        }
    )
    rows = [
        {
            "AT": describe_seconds(step["offset"]),
            "TOOK": describe_seconds(step["seconds"]),
            "STEP": truncate(_name_step(step, run)),
            "FAILED": "yes" if step["failed"] else "",
            "RESULT": truncate(_result_of(step, run)),
        }
        for step in run["timeline"]
    ]
    click.echo()
    print_table(rows, empty="No steps.")
    if files := [describe_file(file) for call in run["tool_calls"] for file in call["files"]]:
        click.echo()
        print_table(files, empty="")


def _count_tries(tries: Any) -> str:
    return f"{len(tries)} before it failed" if tries else ""


def _name_step(step: Any, run: Any) -> str:
    call = _call_of(step, run)
    if call is None or call["server"] == OWN_SERVER:
        return str(step["in_words"])
    # Several connections may have a tool of this name.
    return f"{call['server']}/{step['in_words']}"


def _result_of(step: Any, run: Any) -> str:
    call = _call_of(step, run)
    if call is None:
        return ""
    return call["result"] if call["state"] == "done" else str(call["state"])


def _call_of(step: Any, run: Any) -> Any:
    if step["call"] is None:
        return None
    return next(call for call in run["tool_calls"] if call["id"] == step["call"]["id"])


def _show_stats(server: Server, conversation_id: str, *, as_json: bool) -> None:
    stats = server.get(f"/api/conversations/{conversation_id}/stats")
    if as_json:
        print_json(stats)
        return
    rows = [
        {
            "ID": short_id(run["id"]),
            "STARTED": local_time(run["started_at"]),
            "STATUS": run["status"],
            "TOOK": describe_seconds(run["worked_seconds"]),
            "TOKENS": run["cost"]["tokens"],
            "COST": format_cost(run["cost"]),
        }
        for run in stats["runs"]
    ]
    print_table(rows, empty="No runs yet.")
    medians, allowance = stats["medians"], stats["allowance"]
    click.echo()
    print_fields(
        {
            "median": _describe_medians(medians),
            "failed": f"{stats['failed']} of {len(stats['runs'])}",
            "spent in all": format_amount(allowance["spent"]),
            "allowance": format_amount(allowance),
        }
    )


def _describe_medians(medians: Any) -> str:
    if medians is None:
        return ""
    return f"{describe_seconds(medians['worked_seconds'])}, {format_amount(medians)}"


def format_cost(amount: Any) -> str:
    return f"{amount['micros'] / 10**6:.4f} USD" if amount["micros"] else ""


def describe_seconds(seconds: float | None) -> str:
    """Describe how long something took; nothing if it is not over."""
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes}m" if hours else f"{minutes}m {rest}s"
