"""When tokens are renewed: somewhat before they expire."""

from datetime import datetime, timedelta

#: Before the expiry, but at most this part of the lifetime.
MARGIN = timedelta(minutes=1)
MARGIN_PARTS = 5


def is_due(*, obtained_at: datetime, expires_at: datetime | None, now: datetime) -> bool:
    """Return whether a token is renewed before it is used; one without an expiry never is."""
    if expires_at is None:
        return False
    margin = min(MARGIN, (expires_at - obtained_at) / MARGIN_PARTS)
    return now >= expires_at - margin
