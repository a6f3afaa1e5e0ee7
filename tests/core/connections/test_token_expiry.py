"""When tokens are renewed."""

from datetime import UTC, datetime, timedelta

import pytest

from backburner.core.connections.token_expiry import is_due

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("lifetime", "age", "due"),
    [
        (3600, 3539, False),
        (3600, 3540, True),
        (3600, 7200, True),
        # Short ones are not renewed before each request.
        (3, 2.3, False),
        (3, 2.5, True),
        (0, 0, True),
    ],
)
def test_a_token_is_renewed_somewhat_before_it_expires(
    lifetime: float, age: float, *, due: bool
) -> None:
    expires_at = NOON + timedelta(seconds=lifetime)
    now = NOON + timedelta(seconds=age)

    assert is_due(obtained_at=NOON, expires_at=expires_at, now=now) is due


def test_a_token_without_an_expiry_is_used_until_it_is_refused() -> None:
    assert not is_due(obtained_at=NOON, expires_at=None, now=NOON + timedelta(days=999))
