"""Conditions on the profile that the next run of a conversation uses.

The same rule as `core.routing.next_profile`, except that the frequency of work is not looked at: a
conversation that may leave the demo matches both profiles. Only its row counts, so that a lock on
the row makes the answer final.
"""

from typing import Any

from sqlalchemy import BindParameter, ColumnElement, and_, bindparam, case, or_, text

from backburner.core.routing import ProfileFilter
from backburner.store.tables import conversations, inbox, runs

#: The profile that messages ask for, empty for none: for a reply, for background work, for the run
#: that an item waits for, and for a run that was handed back.
for_reply: ColumnElement[str] = conversations.c.reply_profile
for_work: ColumnElement[str] = conversations.c.work_profile
for_item = case((inbox.c.run_kind == text("'reply'"), for_reply), else_=for_work)
for_queued = case((runs.c.kind == text("'reply'"), for_reply), else_=for_work)


def uses(
    profiles: ProfileFilter, requested: ColumnElement[str], *, resumes: bool = False
) -> ColumnElement[bool]:
    """Whether the next run uses one of these profiles; `resumes`: it was handed back before."""
    if resumes or not profiles.kinds:
        return _uses_own(requested, profiles.profiles)
    kinds = [kind.value for kind in profiles.kinds]
    return or_(_uses_own(requested, profiles.profiles), _moves(requested, profiles.demos, kinds))


def uses_given(requested: ColumnElement[str], *, resumes: bool = False) -> ColumnElement[bool]:
    """Whether the next run uses one of the profiles that are given as parameters."""
    own = _uses_own(requested, _given("profiles"))
    return own if resumes else or_(own, _moves(requested, _given("demos"), _given("moving_kinds")))


def as_parameters(profiles: ProfileFilter) -> dict[str, Any]:
    """Return the parameters for `uses_given`."""
    return {
        "profiles": list(profiles.profiles),
        "demos": list(profiles.demos),
        "moving_kinds": [kind.value for kind in profiles.kinds],
    }


def _given(name: str) -> BindParameter[Any]:
    return bindparam(name, expanding=True)


def _uses_own(
    requested: ColumnElement[str], names: tuple[str, ...] | BindParameter[Any]
) -> ColumnElement[bool]:
    # Not as one expression: PostgreSQL has statistics of columns only. What is mostly false comes
    # first, so that the rest is not looked at.
    return or_(
        and_(conversations.c.profile.in_(names), requested == text("''")),
        and_(requested.in_(names), requested != text("''")),
    )


def _moves(
    requested: ColumnElement[str],
    demos: tuple[str, ...] | BindParameter[Any],
    kinds: list[str] | BindParameter[Any],
) -> ColumnElement[bool]:
    return and_(
        conversations.c.profile.in_(demos),
        conversations.c.kind.in_(kinds),
        conversations.c.requested_profile.is_(None),
        requested == text("''"),
    )
