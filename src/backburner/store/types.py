"""Column types that mean the same on both databases."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import BigInteger, DateTime, Dialect, Text
from sqlalchemy.types import TypeDecorator

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class _Micros(TypeDecorator[datetime]):
    """A time for a database that has none: microseconds since 1970."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        del dialect
        return None if value is None else to_micros(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        del dialect
        return None if value is None else EPOCH + timedelta(microseconds=value)


class Length(TypeDecorator[timedelta]):
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
#: Text that is ordered by its bytes, as SQLite orders all text.
Exact = Text().with_variant(Text(collation="C"), "postgresql")
#: An id: in the same order on both databases, whatever the locale of a server.
Id = Text().with_variant(Text(collation="C"), "postgresql")


def to_micros(moment: datetime) -> int:
    return (moment - EPOCH) // MICROSECOND
