"""Sealed secrets, and the wrapped keys that seal them."""

from sqlalchemy import Column, LargeBinary, Table

from backburner.store.tables.base import metadata, owner
from backburner.store.types import Exact

#: The key of each user, wrapped by a master key, which is not in the database.
data_keys = Table("data_keys", metadata, owner(), Column("wrapped", LargeBinary, nullable=False))

secrets = Table(
    "secrets",
    metadata,
    owner(),
    Column("name", Exact, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
)

#: Secrets of the install itself. Its wrapped key is in `install`.
install_secrets = Table(
    "install_secrets",
    metadata,
    Column("name", Exact, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
)
