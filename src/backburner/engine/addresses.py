"""Where models may be: anywhere, except while tests run."""

import os
from ipaddress import ip_address
from urllib.parse import urlsplit

from backburner.core.errors import EngineFailed

#: Set to 1 for the time of a test run: no test may ever ask a real model.
ONLY_LOOPBACK = "BACKBURNER_TEST_ONLY_LOOPBACK_MODELS"


def check_address(url: str) -> str:
    """Give the address back, or refuse it; whoever is about to ask a model calls this first."""
    if os.environ.get(ONLY_LOOPBACK) == "1" and not is_loopback(url):
        raise EngineFailed(
            "While tests run, models are asked on this machine only.", permanent=True
        )
    return url


def is_loopback(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
