"""Which addresses a model may be called at: while tests run, none but this machine's."""

import os
from ipaddress import ip_address
from urllib.parse import urlsplit

from backburner.core.errors import EngineFailed

#: Set to 1 while tests run, so that none of them can ever cost money.
ONLY_LOOPBACK = "BACKBURNER_TEST_ONLY_LOOPBACK_MODELS"


def check_address(url: str) -> None:
    """Refuse the address of a model that may not be called just now."""
    if os.environ.get(ONLY_LOOPBACK) == "1" and not is_loopback(url):
        raise EngineFailed(
            f"Only models on this machine may be called while {ONLY_LOOPBACK} is 1.",
            permanent=True,
        )


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
