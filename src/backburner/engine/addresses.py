"""Addresses of models: any, except while tests run."""

import os
from ipaddress import ip_address
from urllib.parse import urlsplit

from backburner.core.errors import EngineFailed

#: Set to 1 during a test run: no test may ever call a real model.
ONLY_LOOPBACK = "BACKBURNER_TEST_ONLY_LOOPBACK_MODELS"


def check_address(url: str) -> str:
    """Return the address, or refuse it; to be called before every connection to a model."""
    if os.environ.get(ONLY_LOOPBACK) == "1" and not is_loopback(url):
        raise EngineFailed(
            "While tests run, only models on this machine can be used.", permanent=True
        )
    return url


def is_loopback(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
