"""The processes that work, as operators see them."""

from sqlalchemy import Boolean, Column, Integer, Table, Text

from backburner.store.tables.base import metadata
from backburner.store.types import Id, Time

#: One row for each worker that runs; it is renewed while it does, and deleted when it stops.
workers = Table(
    "workers",
    metadata,
    Column("name", Id, primary_key=True),
    Column("host", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("started_at", Time, nullable=False),
    Column("seen_at", Time, nullable=False),
    #: Its runs are limited to so many, and that many are in progress.
    Column("seats", Integer, nullable=False),
    Column("seats_used", Integer, nullable=False),
    #: It stops, and takes no more work.
    Column("draining", Boolean, nullable=False),
)
