"""Folders that the settings give to each account, from templates such as `/srv/{login}`.

A template is refused if any login could make it a forbidden place, and two templates if any two
logins could make one folder of them, or one in the other. So it does not matter who has an account.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from backburner.core.errors import BadRequest, BadSetting
from backburner.core.passwords import LOGIN_PATTERN
from backburner.core.work.folders import SYSTEM_FOLDERS, ForbiddenPlaces, check_place

_LOGIN = "{login}"
#: Where nothing depends on the login.
_ANY_LOGIN = "login"


def fill_template(template: str, login: str) -> str:
    """Return the folder of an account."""
    if LOGIN_PATTERN.fullmatch(login) is None:
        raise BadRequest(
            "The login of this account cannot be part of a path.",
            hint="Ask the operator to give the account another login.",
        )
    return template.replace(_LOGIN, login)


def check_templates(templates: Sequence[str], forbidden: ForbiddenPlaces) -> None:
    for template in templates:
        for login in _telling_logins(template, forbidden):
            try:
                check_place(fill_template(template, login), forbidden)
            except BadRequest as error:
                raise BadSetting(
                    f"The setting folders cannot have {template}: {error.message}",
                    hint="Name folders that are for agents only, such as /srv/{login}.",
                ) from None
    for one, other in combinations(templates, 2):
        if _can_meet(one, other):
            raise BadSetting(
                f"The setting folders has {one} and {other}, in which accounts can meet: the"
                " folder of one can be that of another, or lie in it.",
                hint="Put them below different folders, such as /srv/work/{login} and"
                " /srv/notes/{login}.",
            )


def _telling_logins(template: str, forbidden: ForbiddenPlaces) -> Iterator[str]:
    """Yield each login whose folder could be, contain or lie in a forbidden place."""
    yield _ANY_LOGIN
    system = (f"/{name}" for name in sorted(SYSTEM_FOLDERS))
    for place in (*forbidden.homes, *forbidden.private, *system):
        for part, name in zip(_split(template), _split(place), strict=False):
            if _LOGIN in part and (found := _pattern(part).fullmatch(name)):
                yield found["login"]


def _can_meet(one: str, other: str) -> bool:
    """Return whether two templates could be one folder, or one in the other, for some logins.

    Each part is looked at by itself, so some are refused that could not. Case does not count,
    because it does not on some disks.
    """
    parts = zip(_split(one.casefold()), _split(other.casefold()), strict=False)
    return all(_can_be_same(mine, theirs) for mine, theirs in parts)


def _can_be_same(one: str, other: str) -> bool:
    if _LOGIN not in one:
        return one == other if _LOGIN not in other else _pattern(other).fullmatch(one) is not None
    if _LOGIN not in other:
        return _pattern(one).fullmatch(other) is not None
    starts = [part.partition(_LOGIN)[0] for part in (one, other)]
    ends = [part.rpartition(_LOGIN)[2] for part in (one, other)]
    shortest_start, shortest_end = min(starts, key=len), min(ends, key=len)
    return all(start.startswith(shortest_start) for start in starts) and all(
        end.endswith(shortest_end) for end in ends
    )


def _split(path: str) -> Sequence[str]:
    return path.strip("/").split("/")


def _pattern(part: str) -> re.Pattern[str]:
    first, *others = map(re.escape, part.split(_LOGIN))
    again = "".join(f"(?P=login){other}" for other in others[1:])
    return re.compile(f"{first}(?P<login>{LOGIN_PATTERN.pattern}){others[0]}{again}")
