"""The browser and system of a request, in a few words of ours.

What a browser says of itself is not stored: only words of these lists are.
"""

from typing import Annotated

from fastapi import Depends, Request

#: By what the User-Agent header contains; the first counts, since browsers name others as well.
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("Mozilla/", "A browser"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("CrOS", "ChromeOS"),
    ("Macintosh", "macOS"),
    ("Linux", "Linux"),
)


def describe_device(user_agent: str) -> str:
    """Name a browser and its system; empty: it is none that is known."""
    browser = next((name for part, name in _BROWSERS if part in user_agent), "")
    system = next((name for part, name in _SYSTEMS if part in user_agent), "")
    return f"{browser} on {system}" if browser and system else browser


async def read_device(request: Request) -> str:
    return describe_device(request.headers.get("user-agent", ""))


Device = Annotated[str, Depends(read_device)]
