"""`backburner connections`: connections to MCP servers, and what their tools may do."""

import difflib
import json
import shlex
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.command_name import name_commands
from backburner.cli.commands.connections.catalogue import catalogue
from backburner.cli.commands.connections.import_servers import import_servers
from backburner.cli.confirmation import confirm, yes_option
from backburner.cli.list_group import LIST, ListGroup
from backburner.cli.output import (
    local_time,
    print_fields,
    print_items,
    print_json,
    print_line,
    print_result,
    print_table,
    printable,
    short_id,
    truncate,
)
from backburner.cli.server_options import json_option, with_server
from backburner.cli.timeout_option import TimeoutType, describe_seconds
from backburner.core.connections.connection import MAX_CALL_TIMEOUT, MIN_CALL_TIMEOUT
from backburner.core.connections.naming import check_title, make_name
from backburner.core.connections.own_program import IMPORTED
from backburner.core.errors import ConnectionFailed, NotFound

PATH = "/api/connections"
_COUNTED = ("calls", "failed", "unknown", "slow")


@click.group("connections", cls=ListGroup)
def connections() -> None:
    """Manage connections to MCP servers. Without a command, list them.

    Agents call the tools of your connections with your own access, which they never see. Add one
    with the command connect. NAME is the name of a connection.
    """


@connections.command(LIST)
@json_option
@with_server
def list_connections(server: Server, *, as_json: bool) -> None:
    """List connections."""
    items = list(server.items(PATH))
    has_titles = any(make_name(item["title"]) != item["name"] for item in items)
    rows = [
        {
            "NAME": item["name"],
            **({"TITLE": item["title"]} if has_titles else {}),
            "SERVER": _describe_server(item),
            "STATE": describe_state(item),
            "TOOLS": item["counts"]["offered"],
            "LAST USED": local_time(item["last_used_at"]) or "never",
        }
        for item in items
    ]
    print_items(
        items, rows, empty="No connections. Add one with the command connect.", as_json=as_json
    )


@connections.command("show")
@click.argument("name")
@json_option
@with_server
def show(server: Server, *, name: str, as_json: bool) -> None:
    """Show a connection, its sign-in and its health."""
    connection = _load(server, name)
    if as_json:
        print_json(connection)
        return
    program = _load_program(server, connection) if connection["program"] == IMPORTED else {}
    print_fields(
        {
            "name": connection["name"],
            "title": connection["title"],
            "server": _describe_server(connection),
            "state": describe_state(connection),
            "sign-in": _describe_sign_in(connection),
            "scopes": " ".join(connection["scopes"]),
            "server wants": " ".join(connection["wanted_scopes"]),
            "not given": " ".join(connection["refused_scopes"]),
            "expires": local_time(connection["expires_at"]),
            "chats": "use it" if connection["in_chats"] else "do not use it",
            "tools": describe_tools(connection) if connection["listed_at"] else "none yet",
            "timeout": describe_seconds(connection["call_timeout"]),
            "last used": local_time(connection["last_used_at"]) or "never",
            "last error": _describe_error(connection),
            **program,
        }
    )


@connections.command("tools")
@click.argument("name")
@json_option
@with_server
def tools(server: Server, *, name: str, as_json: bool) -> None:
    """List the tools of a connection."""
    connection = _load(server, name)
    rows = [
        {
            "TOOL": tool["name"],
            "STATE": tool["state"],
            "CALLS": _describe_calls(tool),
            "DESCRIPTION": truncate(tool["definition"]["description"]),
        }
        for tool in connection["tools"]
    ]
    empty = f"{connection['name']} has no tools."
    if connection["state"] == "signing_in":
        command = name_commands(f"`backburner connect {connection['name']}`")
        empty = f"{connection['name']} is not signed in yet: {command}"
    print_items(connection["tools"], rows, empty=empty, as_json=as_json)


@connections.command("calls")
@click.argument("name", required=False)
@json_option
@with_server
def calls(server: Server, *, name: str | None, as_json: bool) -> None:
    """List the calls that agents made, newest first.

    On one connection, or on all.
    """
    only = {} if name is None else {"connection": find_connection(server, name)["id"]}
    items = list(server.items(f"{PATH}/calls", **only))
    rows = [
        {
            "TIME": local_time(item["started_at"]),
            "TOOL": f"{item['server']}/{item['tool']}",
            "OUTCOME": item["outcome"],
            "SECONDS": f"{_seconds(item):.1f}",
            "CONVERSATION": short_id(item["conversation_id"]),
            # In quotes, because a server may have written it.
            "AGENT WAS TOLD": f'"{item["told"]}"' if item["told"] else "",
        }
        for item in items
    ]
    print_items(items, rows, empty="No calls.", as_json=as_json)


@connections.command("health")
@click.argument("name")
@json_option
@with_server
def health(server: Server, *, name: str, as_json: bool) -> None:
    """Count the calls of the last day by half-hours."""
    found = find_connection(server, name)
    day = server.get(f"{PATH}/{found['id']}/health")
    rows = [
        {"FROM": local_time(slot["at"]), **{what.upper(): slot[what] for what in _COUNTED}}
        for slot in day["slots"]
        if slot["calls"]
    ]
    print_items(day, rows, empty="No calls in the last day.", as_json=as_json)
    if rows and not as_json:
        print_line(f"{day['calls']} calls, {day['average_seconds']:.1f} seconds each.")


def _seconds(call: Any) -> float:
    began, ended = (datetime.fromisoformat(call[when]) for when in ("started_at", "ended_at"))
    return (ended - began).total_seconds()


@connections.command("refresh")
@click.argument("name")
@json_option
@with_server
def refresh(server: Server, *, name: str, as_json: bool) -> None:
    """Connect now and compare the tools, or say what is wrong."""
    found = find_connection(server, name)
    check = server.post(f"{PATH}/{found['id']}/refresh")
    if as_json:
        print_json(check)
    elif not check["error"]:
        off = " It is disabled." if found["disabled"] else ""
        print_line(printable(f"{name} works: {describe_tools(check['connection'])}.{off}"))
        if check["connection"]["counts"]["withheld"]:
            command = f"`backburner connections accept {found['name']}`"
            print_line(name_commands(f"See and accept what is new or changed: {command}"))
        print_left_out(check)
    if check["error"]:
        raise ConnectionFailed(check["error"], hint=check["hint"])


@connections.command("accept")
@click.argument("name")
@click.option("--tool", "names", metavar="TOOL", multiple=True, help="Only this one; repeatable.")
@yes_option
@json_option
@with_server
def accept(
    server: Server, *, name: str, names: tuple[str, ...], is_sure: bool, as_json: bool
) -> None:
    """Show new and changed tools, and let agents use them."""
    connection = _load(server, name)
    known = {tool["name"] for tool in connection["tools"]}
    for tool in names:
        if tool not in known:
            raise NotFound(
                f"{connection['name']} has no tool {tool[:80]!r}.",
                hint=f"See `backburner connections tools {connection['name']}`.",
            )
    withheld = [
        tool
        for tool in connection["tools"]
        if tool["state"] in ("new", "changed") and (not names or tool["name"] in names)
    ]
    if not withheld:
        print_result(connection, "No tools wait to be accepted.", as_json=as_json)
        return
    if not as_json:
        for tool in withheld:
            for line in _compare(tool):
                print_line(printable(line))
    count = "this tool" if len(withheld) == 1 else f"these {len(withheld)} tools"
    confirm(f"Let agents use {count} of {connection['name']}?", is_sure=is_sure)
    seen = {tool["name"]: tool["digest"] for tool in withheld}
    accepted = server.post(f"{PATH}/{connection['id']}/accept", {"tools": seen})
    ticked = [
        one["name"] for one in withheld if one["ticked_read_only"] or one["ticked_repeatable"]
    ]
    ended = f" Your ticks for {', '.join(ticked)} end." if ticked else ""
    print_result(accepted, f"Accepted: {', '.join(seen)}.{ended}", as_json=as_json)


@connections.command("tick")
@click.argument("name")
@click.argument("tool")
@click.option("--read-only", is_flag=True, help="It changes nothing: calls need no approval.")
@click.option("--repeatable", is_flag=True, help="A call that may have been made may be repeated.")
@click.option("--off", is_flag=True, help="Agents do not get it.")
@json_option
@with_server
def tick(server: Server, *, name: str, tool: str, as_json: bool, **ticks: bool) -> None:
    """Say that a tool only reads, may be repeated, or is off.

    Your word counts, and the server's own does not.
    """
    chosen = {what: True for what, is_ticked in ticks.items() if is_ticked}
    if not chosen:
        raise click.UsageError("Pass --read-only, --repeatable or --off.")
    _tick(server, name, tool, chosen, as_json=as_json)


@connections.command("untick")
@click.argument("name")
@click.argument("tool")
@click.option("--read-only", is_flag=True, help="Calls need approval.")
@click.option("--repeatable", is_flag=True, help="Calls are not repeated.")
@click.option("--off", is_flag=True, help="Agents get it again, if it was turned off.")
@click.option("--forget", is_flag=True, help="Forget what you said: our catalogue counts again.")
@json_option
@with_server
def untick(
    server: Server, *, name: str, tool: str, forget: bool, as_json: bool, **ticks: bool
) -> None:
    """Ask before calls of a tool again, and do not repeat them."""
    # Without an option, all that was said of its calls.
    named = [what for what, is_ticked in ticks.items() if is_ticked]
    chosen = named or ["read_only", "repeatable"]
    said = {what: None if forget and what != "off" else False for what in chosen}
    _tick(server, name, tool, said, as_json=as_json)


@connections.command("edit")
@click.argument("name")
@click.option("--title", metavar="TEXT", help="New title; the name stays.")
@click.option("--chats", type=click.Choice(["on", "off"]), help="Whether chats use it unasked.")
@click.option(
    "--timeout",
    metavar="TIME",
    type=TimeoutType(MIN_CALL_TIMEOUT, MAX_CALL_TIMEOUT),
    help="How long a call may take: 5s to 30m.",
)
@json_option
@with_server
def edit(
    server: Server,
    *,
    name: str,
    title: str | None,
    chats: str | None,
    timeout: float | None,
    as_json: bool,
) -> None:
    """Change the title, timeout or use of a connection."""
    if title is None and chats is None and timeout is None:
        raise click.UsageError("Pass --title, --chats or --timeout.")
    if title is not None:
        check_title(title)
    in_chats = None if chats is None else chats == "on"
    body = {"title": title, "in_chats": in_chats, "call_timeout": timeout}
    _change(server, name, body, "Changed", as_json=as_json)


@connections.command("disable")
@click.argument("name")
@json_option
@with_server
def disable(server: Server, *, name: str, as_json: bool) -> None:
    """Keep a connection, and let nothing use it."""
    _change(server, name, {"disabled": True}, "Disabled", as_json=as_json)


@connections.command("enable")
@click.argument("name")
@json_option
@with_server
def enable(server: Server, *, name: str, as_json: bool) -> None:
    """Enable a disabled connection."""
    _change(server, name, {"disabled": False}, "Enabled", as_json=as_json)


@connections.command("use")
@click.argument("conversation")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--none", is_flag=True, help="Let it use none.")
@click.option("--default", is_flag=True, help="A chat uses all that chats use, other work none.")
@json_option
@with_server
def use(
    server: Server,
    *,
    conversation: str,
    names: tuple[str, ...],
    none: bool,
    default: bool,
    as_json: bool,
) -> None:
    """Choose the connections that a conversation may use."""
    if bool(names) + none + default != 1:
        raise click.UsageError("Name connections, or pass --none or --default.")
    found = id_prefix.find_conversation(server, conversation)
    body = {"names": None if default else list(names)}
    changed = server.put(f"/api/conversations/{found}/connections", body)
    chosen = ", ".join(changed["connections"] or ()) or ("the default" if default else "none")
    print_result(changed, f"Connections of {changed['title']}: {chosen}.", as_json=as_json)


def _load_program(server: Server, connection: Any) -> dict[str, str]:
    """Describe a program that its user has imported."""
    program = server.get(f"{PATH}/{connection['id']}/program")
    return {
        "command": shlex.join(program["command"]),
        "network": "used" if program["network"] else "not used",
        "may read": ", ".join(program["readable"]),
        "may change": ", ".join(program["writable"]),
        "variables": ", ".join(program["variables"]),
    }


def _describe_server(connection: Any) -> str:
    if connection["program"] == IMPORTED:
        return "imported program"
    return connection["url"] or f"program {connection['program']}"


def _describe_error(connection: Any) -> str:
    if not connection["last_error"]:
        return ""
    return f"{local_time(connection['last_error_at'])}: {name_commands(connection['last_error'])}"


def find_connection(server: Server, name: str) -> Any:
    """Find a connection by its name or id."""
    found = find_if_any(server, name)
    if found is None:
        raise NotFound(f"You have no connection {name}.", hint="See `backburner connections`.")
    return found


def find_if_any(server: Server, name: str) -> Any:
    wanted = name.strip().casefold()
    items = server.items(PATH)
    return next((item for item in items if wanted in (item["name"], item["id"])), None)


def describe_state(connection: Any) -> str:
    if connection["disabled"]:
        return "disabled"
    if connection["state"] == "signing_in":
        return "not signed in yet"
    if connection["state"] == "signed_out":
        return "wants permissions" if connection["wanted_scopes"] else "signed out"
    if connection["last_error"]:
        return "failing"
    withheld = connection["counts"]["withheld"]
    return f"{_count_tools(withheld)} to accept" if withheld else "ready"


def describe_tools(connection: Any) -> str:
    counts = connection["counts"]
    text = _count_tools(counts["offered"])
    if counts["read_only"]:
        text += f", {counts['read_only']} of them without approval"
    if counts["withheld"]:
        text += f"; to be accepted: {counts['withheld']}"
    if counts["off"]:
        text += f"; off: {counts['off']}"
    return f"{text}; gone: {counts['gone']}" if counts["gone"] else text


def _count_tools(count: int) -> str:
    return "1 tool" if count == 1 else f"{count} tools"


def print_left_out(check: Any) -> None:
    if check["left_out"]:
        rows = [{"LEFT OUT": name, "WHY": why} for name, why in check["left_out"].items()]
        print_table(rows, empty="")


def _load(server: Server, name: str) -> Any:
    return server.get(f"{PATH}/{find_connection(server, name)['id']}")


def _tick(server: Server, name: str, tool: str, ticks: Any, *, as_json: bool) -> None:
    found = find_connection(server, name)
    changed = server.post(f"{PATH}/{found['id']}/ticks", {"tool": tool, **ticks})
    now = next(one for one in changed["tools"] if one["name"] == tool)
    text = f"{found['name']}/{tool}: calls {_describe_calls(now)}."
    print_result(now, text, as_json=as_json)


def _change(server: Server, name: str, body: Any, done: str, *, as_json: bool) -> None:
    found = find_connection(server, name)
    given = {key: value for key, value in body.items() if value is not None}
    changed = server.patch(f"{PATH}/{found['id']}", given)
    print_result(changed, f"{done} {found['name']}.", as_json=as_json)


def _describe_sign_in(connection: Any) -> str:
    if connection["auth"] == "header":
        return f"headers {', '.join(connection['headers'])}"
    return {"none": "none", "oauth": "OAuth"}[connection["auth"]]


def _describe_calls(tool: Any) -> str:
    if tool["off"]:
        return "off"
    if tool["state"] != "accepted":
        return "not offered"
    if tool["read_only"]:
        return "ask after outside text" if tool["discloses"] else "need no approval"
    return "ask, may be repeated" if tool["repeatable"] else "ask"


def _compare(tool: Any) -> Iterator[str]:
    """Show a definition in full, or how it differs from the accepted one."""
    before, after = _write(tool["accepted_definition"]), _write(tool["definition"])
    old = f"{tool['name']} ({'accepted' if tool['accepted_definition'] else 'none'})"
    new = f"{tool['name']} ({tool['state']})"
    yield from difflib.unified_diff(before, after, old, new, lineterm="")


def _write(definition: Any) -> list[str]:
    if definition is None:
        return []
    parameters = json.dumps(definition["parameters"], indent=2, sort_keys=True, ensure_ascii=False)
    return [*definition["description"].splitlines(), *parameters.splitlines()]


connections.add_command(import_servers)
connections.add_command(catalogue)
