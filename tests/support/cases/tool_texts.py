"""Tool texts as agents and clients read them; run this file to rewrite `all_tools.json`.

A changed word can change the behaviour of an agent, and ends the grants for the tool.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.core.content.file import FileReference
from backburner.core.ids import ConversationId, RunId, UserId
from backburner.core.run import RunKind, Turn
from backburner.gateway.network import CheckedNetwork
from backburner.ports import Offer, Store
from backburner.process.shell import ConfinedShell
from backburner.process.sign_ins.runner import SignedInPrograms
from backburner.process.sign_ins.sign_in import Owner
from backburner.tools.content.results import result_offers
from backburner.tools.conversation import conversation_offers
from backburner.tools.mcp_server import SERVER_INSTRUCTIONS, client_offers
from backburner.tools.progress import progress_offers
from backburner.tools.workspace import workspace_offers
from support.doubles.tools import ALONE, TestTools

FILE = Path(__file__).with_name("all_tools.json")
_USER, _PLACE = UserId("u_user"), ConversationId("c_place")


def all_offers() -> Sequence[Offer]:
    """Make every built-in tool, to read its texts only."""
    deps = Deps(store=cast("Store", None), engines={}, default_profile="", toolbox=TestTools())
    turn = Turn(
        user_id=_USER, conversation_id=_PLACE, run_id=RunId("r_run"), epoch=1, kind=RunKind.REPLY
    )
    return (
        *conversation_offers(deps, turn),
        *client_offers(deps, Origin.of(turn)),
        *result_offers(deps, turn),
        *progress_offers(deps, replace(turn, kind=RunKind.BACKGROUND)),
        *workspace_offers(
            Path("workspace"),
            Path("kept"),
            ConfinedShell(),
            CheckedNetwork(),
            replace(ALONE, may_sign_in=True, keep=_keep),
            SignedInPrograms(Owner(Path("home"), {})),
        ),
    )


async def _keep(data: bytes, name: str) -> FileReference:
    raise NotImplementedError


def outside_offers() -> Sequence[Offer]:
    """Make the tools as clients outside read them."""
    deps = Deps(store=cast("Store", None), engines={}, default_profile="", toolbox=TestTools())
    return client_offers(deps, Origin(_USER, _PLACE))


def describe(offer: Offer) -> dict[str, Any]:
    return {
        "name": offer.tool.name,
        "description": offer.description,
        "parameters": dict(offer.parameters),
        "free": offer.tool.free,
        "read_only": offer.read_only,
        "outside": offer.outside,
    }


def collect() -> dict[str, Any]:
    return {
        "instructions": SERVER_INSTRUCTIONS,
        "tools": [describe(offer) for offer in all_offers()],
        "clients": [describe(offer) for offer in outside_offers()],
    }


def main() -> None:
    FILE.write_text(json.dumps(collect(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
