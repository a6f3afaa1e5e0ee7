"""What belongs together in a transaction, each under a name of its own."""

from backburner.store.accounts.accounts import Accounts
from backburner.store.accounts.credentials import Credentials
from backburner.store.accounts.mcp_clients import McpClients
from backburner.store.accounts.personal_data import PersonalData
from backburner.store.accounts.rate_limit import RateLimits
from backburner.store.announcing import Announcing
from backburner.store.queries.away import Away
from backburner.store.queries.browse import Browse
from backburner.store.queries.discovery import Discovery
from backburner.store.queries.jobs import Jobs
from backburner.store.queries.replies import Replies
from backburner.store.queries.tasks import Tasks
from backburner.store.records.idempotency import StoredResponses
from backburner.store.records.memories import Memories


class Groups(Announcing):
    @property
    def absence(self) -> Away:
        return Away(self.connection)

    @property
    def accounts(self) -> Accounts:
        return Accounts(self.connection)

    @property
    def answers(self) -> StoredResponses:
        return StoredResponses(self.connection)

    @property
    def attempts(self) -> RateLimits:
        return RateLimits(self.connection)

    @property
    def browse(self) -> Browse:
        return Browse(self.connection)

    @property
    def clients(self) -> McpClients:
        return McpClients(self.connection)

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
    def mine(self) -> PersonalData:
        return PersonalData(self.connection, self.now)

    @property
    def replies(self) -> Replies:
        return Replies(self.connection)

    @property
    def tasks(self) -> Tasks:
        return Tasks(self.connection)
