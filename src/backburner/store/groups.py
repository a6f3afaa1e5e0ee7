"""What belongs together in a transaction, each under a name of its own."""

from backburner.store.accounts import Accounts
from backburner.store.announcing import Announcing
from backburner.store.answers import Answers
from backburner.store.attempts import Attempts
from backburner.store.away import Absence
from backburner.store.browse import Browse
from backburner.store.clients import Clients
from backburner.store.credentials import Credentials
from backburner.store.discovery import Discovery
from backburner.store.jobs import Jobs
from backburner.store.memories import Memories
from backburner.store.mine import Mine
from backburner.store.replies import Replies
from backburner.store.tasks import Tasks


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
