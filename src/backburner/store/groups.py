"""What belongs together in a transaction, each under a name of its own."""

from backburner.store.accounts.accounts import Accounts
from backburner.store.accounts.credentials import Credentials
from backburner.store.accounts.mcp_clients import Clients
from backburner.store.accounts.personal_data import Mine
from backburner.store.accounts.rate_limit import Attempts
from backburner.store.announcing import Announcing
from backburner.store.queries.away import Absence
from backburner.store.queries.browse import Browse
from backburner.store.queries.discovery import Discovery
from backburner.store.queries.jobs import Jobs
from backburner.store.queries.replies import Replies
from backburner.store.queries.tasks import Tasks
from backburner.store.records.idempotency import Answers
from backburner.store.records.memories import Memories


class Groups(Announcing):
    @property
    def absence(self) -> Absence:
        return Absence(self.connection)

    @property
    def accounts(self) -> Accounts:
        return Accounts(self.connection)

    @property
    def answers(self) -> Answers:
        return Answers(self.connection)

    @property
    def attempts(self) -> Attempts:
        return Attempts(self.connection)

    @property
    def browse(self) -> Browse:
        return Browse(self.connection)

    @property
    def clients(self) -> Clients:
        return Clients(self.connection)

    @property
    def credentials(self) -> Credentials:
        return Credentials(self.connection)

    @property
    def discovery(self) -> Discovery:
        return Discovery(self.connection)

    @property
    def jobs(self) -> Jobs:
        return Jobs(self.connection, self.now)

    @property
    def memories(self) -> Memories:
        return Memories(self.connection, self.now)

    @property
    def mine(self) -> Mine:
        return Mine(self.connection, self.now)

    @property
    def replies(self) -> Replies:
        return Replies(self.connection)

    @property
    def tasks(self) -> Tasks:
        return Tasks(self.connection)
