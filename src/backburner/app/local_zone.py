"""The time zone of this machine, by its IANA name."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from backburner.core.errors import BadSchedule
from backburner.core.schedule.cron import find_zone

LOCALTIME, TIMEZONE = Path("/etc/localtime"), Path("/etc/timezone")
#: A path to a zone file has the name of the zone after this.
_FOLDER = "zoneinfo/"
#: Other names of UTC, which containers and servers often have.
_UTC_NAMES = ("Etc/UTC", "Etc/UCT", "Etc/Universal", "Etc/Zulu", "UCT", "Universal", "Zulu")


def find_local_zone(
    environ: Mapping[str, str] = os.environ,
    *,
    localtime: Path = LOCALTIME,
    timezone: Path = TIMEZONE,
) -> str | None:
    """Return the name of the zone, as programs of this terminal see it; None: it has no name.

    `TZ` counts alone if it is set, as it does for other programs.
    """
    if "TZ" in environ:
        return _valid_name(environ["TZ"].removeprefix(":"))
    with suppress(OSError):
        if name := _valid_name(str(localtime.readlink())):
            return name
    with suppress(OSError, UnicodeDecodeError):
        return _valid_name(timezone.read_text(encoding="utf-8"))
    return None


def _valid_name(text: str) -> str | None:
    # Folders with leap seconds hold zones of the same names.
    name = text.strip().rpartition(_FOLDER)[2].removeprefix("posix/").removeprefix("right/")
    try:
        find_zone(name)
    except BadSchedule:
        return None
    return "UTC" if name in _UTC_NAMES else name
