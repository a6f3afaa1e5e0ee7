"""Column types that mean the same on both databases."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import BigInteger, DateTime, Dialect, Text
from sqlalchemy.types import TypeDecorator

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class _Micros(TypeDecorator[datetime]):
    """A time as microseconds since 1970, for SQLite, which has no type for it."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        del dialect
        return None if value is None else to_micros(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        del dialect
        return None if value is None else EPOCH + timedelta(microseconds=value)


class Duration(TypeDecorator[timedelta]):
    """A duration, as microseconds."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: timedelta | None, dialect: Dialect) -> int | None:
        del dialect
        return None if value is None else value // MICROSECOND

    def process_result_value(self, value: int | None, dialect: Dialect) -> timedelta | None:
        del dialect
        return None if value is None else timedelta(microseconds=value)


#: An aware time in UTC.
Time = DateTime(timezone=True).with_variant(_Micros(), "sqlite")
#: Text that is ordered by its bytes, whatever the locale of a PostgreSQL server.
Exact = Text().with_variant(Text(collation="C"), "postgresql")
Id = Exact


def to_micros(moment: datetime) -> int:
    return (moment - EPOCH) // MICROSECOND
