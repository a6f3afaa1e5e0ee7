"""`python -m support.model_api`: a fake model for other processes. It says hello."""

import argparse
import asyncio
from contextlib import suppress

from support.model_api.server import ModelApi


async def serve(port: int) -> None:
    async with ModelApi(port=port) as api:
        print(api.address, flush=True)  # noqa: T201 (the caller waits for this line)
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m support.model_api")
    parser.add_argument("--port", type=int, default=0, help="0 for any free port")
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
