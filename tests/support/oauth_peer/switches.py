"""How the peer behaves, which a test changes while it runs, and what it has counted."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Switches:
    #: How long access tokens are good.
    access_seconds: float = 3
    #: Each refresh gives a new refresh token, and the one before is used up.
    rotate: bool = True
    #: A refresh token that was just used gives its successors once more.
    grace: bool = False
    #: A refresh token that is used twice ends all tokens of its user.
    reuse_revokes: bool = False
    #: There are refresh tokens at all.
    refresh_tokens: bool = True
    #: Replies to a refresh have no refresh token and no scope.
    terse: bool = False
    #: Clients may register themselves.
    registration: bool = True
    #: Clients may be known by the address of a document. It is fetched without a look at the
    #: certificate.
    documents: bool = False
    #: What the final address says of the issuer: `right`, `wrong` or `none`.
    iss: str = "right"
    #: Put over the metadata of the authorization server and of the resource; null leaves out.
    metadata: dict[str, Any] = field(default_factory=dict)
    resource_metadata: dict[str, Any] = field(default_factory=dict)
    #: Paths where there is a document with metadata too, and the path that it is a copy of.
    copies: dict[str, str] = field(default_factory=dict)
    #: The whole header of a refusal, if it is not the usual one.
    challenge: str | None = None
    #: How documents with metadata come: so many bytes too many, after a while, from elsewhere.
    extra_bytes: int = 0
    metadata_seconds: float = 0
    metadata_location: str = ""
    #: The next requests to the token endpoint are answered with these statuses, and not served.
    token_statuses: list[int] = field(default_factory=list)
    #: So many of the next requests to it are served, and then answered with 502.
    lost_tokens: int = 0
    token_seconds: float = 0
    #: The scope that calls of tools want besides `mail.read`.
    wanted_scope: str = ""
    #: Users give no scopes but these; null: all that they are asked for.
    given_scopes: list[str] | None = None
    #: So many of the next calls of tools are made, and then answered with 502.
    lost_calls: int = 0
    #: So many of the next calls of tools are made, and then never answered.
    held_calls: int = 0


@dataclass
class Record:
    """What was done."""

    #: Of `registered`, `exchanged`, `refreshed`, `refused` (a refresh), `revoked`.
    counts: Counter[str] = field(default_factory=Counter)
    #: By whom, and which tool.
    calls: list[tuple[str, str]] = field(default_factory=list)
    #: Mails that were sent: by whom, to whom, the text.
    sent: list[tuple[str, str, str]] = field(default_factory=list)
    #: All tokens and codes that were ever given out.
    secrets: list[str] = field(default_factory=list)
    #: Requests to the token endpoint, by their form.
    token_requests: list[dict[str, str]] = field(default_factory=list)
    #: Registrations, as they were asked for.
    registrations: list[dict[str, Any]] = field(default_factory=list)
    #: Paths that were asked for, at the authorization server and at the MCP server.
    paths: list[str] = field(default_factory=list)

    def dump(self) -> dict[str, Any]:
        # Not `asdict`, which makes pairs of what a counter has counted.
        return dict(vars(self))
