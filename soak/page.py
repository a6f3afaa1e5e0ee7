"""What Lighthouse says of pages of the showcase: performance, accessibility, best practices.

Arguments are addresses of other pages, such as `/settings/model`.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

import structlog
from support.browser.browsing import browsing_with_port
from support.lighthouse import score
from support.mcp_peers.others import free_port
from support.showcase.house import LOGIN, open_house
from support.showcase.looking import fill, sign_in

PAGES = ("/c/{builds}", "/needs-you", "/new", "/tasks", "/connections", "/settings/you")
LEAST = 95


async def measure() -> int:
    broken, port = 0, free_port()
    with tempfile.TemporaryDirectory() as data, tempfile.TemporaryDirectory() as profile:
        async with (
            open_house(Path(data)) as house,
            browsing_with_port(Path(profile), port) as context,
        ):
            await sign_in(context, house, LOGIN)
            for path in sys.argv[1:] or PAGES:
                for phone in (False, True):
                    found = await score(house.address + fill(house, path), port, phone=phone)
                    device = "phone" if phone else "desktop"
                    figures = ", ".join(f"{name} {part}" for name, (part, _) in found.items())
                    print(f"{path:16} {device:8} {figures}")
                    for name, (part, said) in found.items():
                        broken += part < LEAST
                        for one in said if part < 100 else ():
                            print(f"{'':16} {name}: {one}")
    return broken


def main() -> None:
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    broken = asyncio.run(measure())
    print(f"{broken} figures are below {LEAST}.")
    sys.exit(broken > 0)


if __name__ == "__main__":
    main()
