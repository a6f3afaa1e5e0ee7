"""Users, their credentials and memories, and the settings of the install."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    false,
)

from backburner.store.tables.base import metadata, owner, partial_index
from backburner.store.types import Exact, Id, Time

users = Table(
    "users",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", Text, nullable=False, server_default=""),
    Column("zone", Text, nullable=False, server_default="UTC"),
    Column("paused", Boolean, nullable=False, server_default=false()),
    #: When their background work was last claimed: the least recently served user comes first.
    Column("served_at", Time, nullable=False),
    Column("created_at", Time, nullable=False),
    #: The owner of a fresh install has neither login nor password.
    Column("login", Text),
    Column("password", Text),
    Column("role", Text, nullable=False, server_default="member"),
    Column("disabled_at", Time),
    #: They have not seen yet what happened since then.
    Column("away_since", Time),
    #: When they last resumed their background work, after a pause.
    Column("resumed_at", Time),
    #: Who said so; `none`: nobody, and UTC is a guess.
    Column("zone_source", Text, nullable=False, server_default="none"),
    Index("uq_users_login", "login", unique=True),
)

credentials = Table(
    "credentials",
    metadata,
    #: Of the secret, which is not stored.
    Column("digest", Text, primary_key=True),
    Column("id", Id, nullable=False),
    Column("user_id", Id, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False, server_default=""),
    Column("scopes", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("expires_at", Time),
    Column("used_at", Time),
    Column("ended_at", Time),
    #: Of a token: the parent of the jobs started with it over MCP. It may have been deleted.
    Column("conversation_id", Id),
    #: What of the user's the work of a token may use.
    Column("uses", Text, nullable=False, server_default=""),
    #: The names of the connections that the work of a token may use.
    Column("connections", Text, nullable=False, server_default=""),
    #: Of a session: the browser and its system, in words.
    Column("device", Text, nullable=False, server_default=""),
    Index("uq_credentials_id", "user_id", "id", unique=True),
)

#: Failed sign-in attempts, by account and by address.
attempts = Table(
    "attempts",
    metadata,
    Column("key", Text, primary_key=True),
    Column("count", Integer, nullable=False),
    Column("since", Time, nullable=False),
)

#: The last number of a user's rows in a table, where no sequence gives it.
#: The row is also the lock under which the events of a user are written.
counters = Table(
    "counters",
    metadata,
    owner(),
    Column("name", Text, primary_key=True),
    Column("last", BigInteger, nullable=False),
)

#: Responses to requests with an idempotency key.
answers = Table(
    "answers",
    metadata,
    owner(),
    Column("key", Text, primary_key=True),
    Column("request", Text, nullable=False),
    Column("status", Integer),
    Column("body", Text),
    Column("created_at", Time, nullable=False),
    Index("ix_answers_created_at", "created_at"),
)
Index("ix_users_served_at", users.c.served_at)

#: The key in `install` that exists while all background work is paused.
PAUSED = "paused"
#: Administrative acts. No reference to users: what somebody did outlives their account.
audit = Table(
    "audit",
    metadata,
    Column("id", Id, primary_key=True),
    Column("at", Time, nullable=False),
    Column("actor", Id, nullable=False),
    Column("act", Text, nullable=False),
    #: Whom it concerns.
    Column("user_id", Id),
    Column("detail", Text, nullable=False),
    Index("ix_audit_of_user", "user_id", "id"),
)

#: Trouble of the models' providers, by profile.
outages = Table(
    "outages",
    metadata,
    Column("profile", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("since", Time, nullable=False),
    #: Background work of the profile is not claimed before; then one run is a probe.
    Column("until", Time, nullable=False),
    Column("probes", Integer, nullable=False),
    #: The end of the last rest, or later, while runs try the model.
    Column("tried_until", Time, nullable=False),
    #: When the model last answered a call, though no run has ended well since.
    Column("answered_at", Time),
)

#: Settings of the install as a whole.
install = Table(
    "install",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

#: The users' own projects in which conversations may work.
folders = Table(
    "folders",
    metadata,
    owner(),
    Column("path", Exact, primary_key=True),
    #: The id of the machine; empty: all machines share it.
    Column("machine", Exact, primary_key=True),
    Column("machine_name", Text, nullable=False),
    Column("read_only", Boolean, nullable=False),
    Column("from_settings", Boolean, nullable=False),
    #: The accepted instructions by file, and the digest of changed ones that were reported.
    Column("instructions", Text, nullable=False),
    Column("reported", Text, nullable=False),
    Column("created_at", Time, nullable=False),
)

memories = Table(
    "memories",
    metadata,
    owner(),
    Column("key", Text, primary_key=True),
    Column("text", Text, nullable=False),
    #: Where it was written, and whether it may contain outside text.
    Column("conversation_id", Id),
    Column("outside", Boolean, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
)
_is_trusted = ~memories.c.outside
partial_index("ix_memories_newest", memories.c.user_id, memories.c.updated_at, where=_is_trusted)

#: The search index of memories.
memory_words = Table(
    "memory_words",
    metadata,
    Column("user_id", Id),
    Column("word", Exact),
    Column("key", Text),
    PrimaryKeyConstraint("user_id", "word", "key"),
    ForeignKeyConstraint(
        ["user_id", "key"], ["memories.user_id", "memories.key"], ondelete="CASCADE"
    ),
    Index("ix_memory_words_of_memory", "user_id", "key"),
)
