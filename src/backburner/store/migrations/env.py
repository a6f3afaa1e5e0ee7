"""Alembic's environment: runs on the caller's connection, in the caller's transaction.

To write a revision, in a checkout, let it compare the tables with a database that is current:
`alembic -x url=sqlite:////a/backburner.sqlite3 revision --autogenerate --rev-id 0011 -m "Words"`
"""

from alembic import context
from sqlalchemy import Connection

from backburner.store.dialect import make_engine
from backburner.store.tables import metadata


def run(connection: Connection) -> None:
    # Nothing about logging: that is set up already.
    context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()


if handed := context.config.attributes.get("connection"):
    run(handed)
else:
    with make_engine(context.get_x_argument(as_dictionary=True)["url"]).begin() as own:
        run(own)
