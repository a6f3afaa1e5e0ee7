"""`backburner user` and `token`: accounts, invitations, sign-in links and API tokens."""

import sys
from typing import Any

import click

from backburner.cli.client import Server
from backburner.cli.commands.account.me import format_amount
from backburner.cli.commands.connections.option import connection_option
from backburner.cli.confirmation import confirm, yes_option
from backburner.cli.id_prefix import match
from backburner.cli.offline import or_here
from backburner.cli.output import (
    local_time,
    print_items,
    print_line,
    print_result,
    printable,
    short_id,
)
from backburner.cli.server_options import json_option, with_server
from backburner.core.errors import BadRequest, NotFound


@click.group("user")
def user() -> None:
    """Manage user accounts."""


ROLES = {"member": "a member", "operator": "an operator"}
role_option = click.option(
    "--role",
    type=click.Choice(["member", "operator"]),
    default="member",
    show_default=True,
    help="Operators manage accounts and the server.",
)


@user.command("list")
@json_option
@with_server
def list_users(server: Server, *, as_json: bool) -> None:
    """List all accounts."""
    items = list(server.items("/api/users"))
    rows = [
        {
            "ID": short_id(account["id"]),
            "LOGIN": account["login"] or "-",
            "NAME": account["name"],
            "ROLE": account["role"],
            "SIGN-IN": _sign_in_method(account),
            "CREATED": local_time(account["created_at"]),
        }
        for account in items
    ]
    print_items(items, rows, empty="No users.", as_json=as_json)


def _sign_in_method(account: Any) -> str:
    if account["disabled_at"]:
        return "disabled"
    return "password" if account["has_password"] else "link"


@user.command("audit")
@click.option("--mine", is_flag=True, help="Only what others did to your own account.")
@json_option
@with_server
def audit(server: Server, *, mine: bool, as_json: bool) -> None:
    """List administrative acts, newest first: who did what, and when."""
    items = list(server.items("/api/me/audit" if mine else "/api/audit"))
    rows = [
        {
            "TIME": local_time(entry["at"]),
            "BY": short_id(entry["actor"]),
            "ACT": entry["act"].replace("_", " "),
            "USER": short_id(entry["user"] or "-"),
            "DETAIL": entry["detail"],
        }
        for entry in items
    ]
    print_items(items, rows, empty="No administrative acts.", as_json=as_json)


@user.command("add")
@click.argument("login")
@click.option("--name", default="", help="Display name.")
@role_option
@with_server
def add(server: Server, *, login: str, name: str, role: str) -> None:
    """Create an account and print the link to set its password."""
    created = server.post_once("/api/users", {"login": login, "name": name, "role": role})
    click.echo(created["reset"]["link"])


@user.command("invite")
@click.option("--name", default="", help="Note on whom the invitation is for.")
@role_option
@with_server
def invite(server: Server, *, name: str, role: str) -> None:
    """Print an invitation link that creates one account."""
    click.echo(server.post_once("/api/invitations", {"name": name, "role": role})["link"])


@user.command("invitations")
@json_option
@with_server
def invitations(server: Server, *, as_json: bool) -> None:
    """List unused invitations."""
    items = list(server.items("/api/invitations"))
    rows = [
        {
            "ID": short_id(invitation["id"]),
            "NAME": invitation["name"] or "-",
            "ROLE": invitation["role"],
            "EXPIRES": local_time(invitation["expires_at"]),
        }
        for invitation in items
    ]
    print_items(items, rows, empty="No invitations.", as_json=as_json)


@user.command("uninvite")
@click.argument("invitation")
@with_server
def uninvite(server: Server, *, invitation: str) -> None:
    """Revoke an invitation. INVITATION is its name, its id, or the start of the id."""
    items = list(server.items("/api/invitations"))
    invitation_id = match(invitation, items, "invitation", name="name")
    (name,) = [item["name"] or "it" for item in items if item["id"] == invitation_id]
    server.delete(f"/api/invitations/{invitation_id}")
    print_line(printable(f"Revoked: {name}."))


@user.command("reset")
@click.argument("login", required=False)
@or_here("make_reset_link")
@with_server
def reset(server: Server, *, login: str | None) -> None:
    """Print a link to set a new password."""
    if login is None:
        raise click.UsageError("Pass LOGIN, or --here for the owner.")
    click.echo(server.post_once(f"/api/users/{_find_user(server, login)['id']}/reset")["link"])


@user.command("disable")
@click.argument("login")
@click.option("--undo", is_flag=True, help="Enable the account again.")
@yes_option
@with_server
def disable(server: Server, *, login: str, undo: bool, is_sure: bool) -> None:
    """Disable an account.

    Its work stops, and its sessions and tokens end.
    """
    account = _find_user(server, login)
    name = account["login"] or account["id"]
    if not undo:
        question = f"Disable {name}, stop their work, and end their sessions and tokens?"
        confirm(question, is_sure=is_sure)
    server.patch(f"/api/users/{account['id']}", {"disabled": not undo})
    print_line(printable(f"{'Enabled' if undo else 'Disabled'}: {name}."))


@user.command("edit")
@click.argument("login")
@click.option("--name", metavar="TEXT", help="New display name.")
@click.option("--role", type=click.Choice(["member", "operator"]), help="New role.")
@yes_option
@json_option
@with_server
def edit(
    server: Server,
    *,
    login: str,
    name: str | None,
    role: str | None,
    is_sure: bool,
    as_json: bool,
) -> None:
    """Change the name or role of an account. A new role ends its sessions and tokens."""
    changes = {"name": name, "role": role}
    body = {field: value for field, value in changes.items() if value is not None}
    if not body:
        raise click.UsageError("Pass --name or --role.")
    account = _find_user(server, login)
    if role not in (None, account["role"]):
        question = f"Make {login} {ROLES[role]}, and end their sessions and tokens?"
        confirm(question, is_sure=is_sure)
    changed = server.patch(f"/api/users/{account['id']}", body)
    text = f"Changed: {changed['login'] or changed['id']}, {changed['name']}, {changed['role']}."
    print_result(changed, text, as_json=as_json)


@user.command("limit")
@click.argument("login")
@click.argument("limits", nargs=-1, metavar="SCOPE=AMOUNT...", required=True)
@json_option
@with_server
def limit(server: Server, *, login: str, limits: tuple[str, ...], as_json: bool) -> None:
    """Limit what a user may spend (operators only).

    For example: day=5 USD, user=100 USD; day=none removes your limit. They may set less.
    """
    allowances = dict(map(_read_limit, limits))
    account = _find_user(server, login)
    path = f"/api/users/{account['id']}/allowances"
    changed = server.put(path, {"allowances": allowances})
    parts = [f"{item['scope']} {format_amount(item)}" for item in changed["allowances"]]
    print_result(changed, f"{login} may spend: {', '.join(parts)}.", as_json=as_json)


def _read_limit(text: str) -> tuple[str, str | None]:
    scope, separator, amount = text.partition("=")
    if not separator or scope not in ("day", "user") or not amount.strip():
        raise BadRequest(f"{text!r} is not a limit.", hint="Write day=5 USD or user=100 USD.")
    return scope, None if amount.strip() == "none" else amount


@user.command("spend")
@json_option
@with_server
def spend(server: Server, *, as_json: bool) -> None:
    """List what each user has spent (operators only)."""
    items = list(server.items("/api/operate/spend"))
    rows = [
        {
            "LOGIN": item["login"] or item["user"],
            "TODAY": format_amount(item["today"]),
            "30 DAYS": format_amount(item["last_30_days"]),
            "IN ALL": format_amount(item["total"]),
            "PER DAY": next(
                (format_amount(one) for one in item["allowances"] if one["scope"] == "day"), ""
            ),
        }
        for item in items
    ]
    print_items(items, rows, empty="No users.", as_json=as_json)


@user.command("password")
@click.option("--login", metavar="LOGIN", help="Set your login as well; needed the first time.")
@yes_option
@with_server
def password(server: Server, *, login: str | None, is_sure: bool) -> None:
    """Set your own password. It is asked for, and not shown.

    All your sessions and tokens end, that of this command line included.
    """
    if not sys.stdin.isatty():
        raise BadRequest("A password is typed in a terminal.", hint="Run it in one.")
    confirm("End all your sessions and tokens, and set a new password?", is_sure=is_sure)
    body = {
        "current": click.prompt(
            "Current password", default="", show_default=False, hide_input=True
        ),
        "password": click.prompt("New password", hide_input=True, confirmation_prompt=True),
    }
    server.put("/api/password", body if login is None else {**body, "login": login})
    click.echo("The password is set. Sign in with it, or create a token in the browser.")


@user.command("link")
@click.argument("login", required=False)
@or_here("make_sign_in_link")
@with_server
def link(server: Server, *, login: str | None) -> None:
    """Print a link that signs you in once, within 15 minutes."""
    if login is not None:
        raise click.UsageError("A link for another user requires --here.")
    click.echo(server.post_once("/api/sign-in-links")["link"])


def _find_user(server: Server, login: str) -> Any:
    """Find a user by login or id."""
    for account in server.items("/api/users"):
        if login.strip().lower() in (account["login"], account["id"]):
            return account
    raise NotFound(f"No user has the login {login}.", hint="See `backburner user list`.")


@click.group("token")
def token() -> None:
    """Manage API tokens."""


@token.command("create")
@click.option("--name", required=True, help="Note on what the token is for.")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(["read", "write", "approve", "metrics", "operate"]),
    multiple=True,
    default=["read"],
    help="Permission of the token; repeat for several. With approve it may consent for you, except"
    " to work that it handed out itself. [default: read]",
)
@click.option(
    "--with",
    "uses",
    type=click.Choice(["memories", "folders", "sign-ins"]),
    multiple=True,
    help="What of yours may be used by work that this token hands out. [default: nothing]",
)
@connection_option("Connection that this work may use; repeatable. [default: none]")
@click.option(
    "--expires",
    metavar="TIME",
    default="90d",
    show_default=True,
    help="Lifetime such as 12h or 30d, or `never`.",
)
@with_server
def create(
    server: Server,
    *,
    name: str,
    scopes: tuple[str, ...],
    uses: tuple[str, ...],
    connections: tuple[str, ...],
    expires: str,
) -> None:
    """Create a token and print it. It is shown only once."""
    body = {
        "name": name,
        "scopes": sorted(set(scopes)),
        "uses": sorted(set(uses)),
        "connections": list(connections),
        "expires": None if expires == "never" else expires,
    }
    click.echo(server.post_once("/api/tokens", body)["token"])


@token.command("list")
@json_option
@with_server
def list_tokens(server: Server, *, as_json: bool) -> None:
    """List your valid tokens."""
    items = list(server.items("/api/tokens"))
    rows = [
        {
            "ID": short_id(item["id"]),
            "NAME": item["name"],
            "SCOPES": " ".join(item["scopes"]),
            "WITH": _describe_uses(item),
            "EXPIRES": local_time(item["expires_at"]) or "never",
            "LAST USED": local_time(item["used_at"]) or "never",
        }
        for item in items
    ]
    print_items(items, rows, empty="No tokens.", as_json=as_json)


def _describe_uses(token: Any) -> str:
    if token["uses"] is None:
        return "everything"
    return " ".join([*token["uses"], *(f"connection {name}" for name in token["connections"])])


@token.command("revoke")
@click.argument("token")
@yes_option
@with_server
def revoke(server: Server, *, token: str, is_sure: bool) -> None:
    """Revoke a token at once. TOKEN is its name, its id, or the start of the id."""
    matches = [
        item
        for item in server.items("/api/tokens")
        if item["id"].startswith(token) or item["name"] == token
    ]
    if not matches:
        raise NotFound(f"You have no token {token}.", hint="See `backburner token list`.")
    if len(matches) > 1:
        raise BadRequest(f"{len(matches)} tokens match {token}.", hint="Use more of the id.")
    (found,) = matches
    confirm(f"Revoke {found['name']!r}? Whatever uses it is signed out.", is_sure=is_sure)
    server.delete(f"/api/tokens/{found['id']}")
    print_line(printable(f"Revoked: {found['name']}."))
