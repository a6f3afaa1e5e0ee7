"""An open transaction: every group of rows under its name."""

from functools import cached_property

from backburner.store.accounts.accounts import Accounts
from backburner.store.accounts.credentials import Credentials
from backburner.store.accounts.mcp_clients import McpClients
from backburner.store.accounts.personal_data import PersonalData
from backburner.store.accounts.rate_limit import RateLimits
from backburner.store.accounts.users import Users
from backburner.store.context import Context
from backburner.store.queries.away import Away
from backburner.store.queries.browse import Browse
from backburner.store.queries.discovery import Discovery
from backburner.store.queries.jobs import Jobs
from backburner.store.queries.replies import Replies
from backburner.store.queries.tasks import Tasks
from backburner.store.queue.claims import Queue
from backburner.store.queue.turns import Turns
from backburner.store.records.conversations import Conversations
from backburner.store.records.grants import Grants
from backburner.store.records.idempotency import StoredResponses
from backburner.store.records.inbox import Inbox
from backburner.store.records.memories import Memories
from backburner.store.records.messages import Messages
from backburner.store.records.notices import Deliveries, Notices
from backburner.store.records.questions import Questions
from backburner.store.records.runs import Runs
from backburner.store.records.sessions import Sessions
from backburner.store.records.spending import Spending
from backburner.store.records.tool_calls import ToolCalls


class Tx(Context):
    @cached_property
    def accounts(self) -> Accounts:
        return Accounts(self)

    @cached_property
    def away(self) -> Away:
        return Away(self)

    @cached_property
    def browse(self) -> Browse:
        return Browse(self)

    @cached_property
    def conversations(self) -> Conversations:
        return Conversations(self)

    @cached_property
    def credentials(self) -> Credentials:
        return Credentials(self)

    @cached_property
    def deliveries(self) -> Deliveries:
        return Deliveries(self)

    @cached_property
    def discovery(self) -> Discovery:
        return Discovery(self)

    @cached_property
    def grants(self) -> Grants:
        return Grants(self)

    @cached_property
    def inbox(self) -> Inbox:
        return Inbox(self)

    @cached_property
    def jobs(self) -> Jobs:
        return Jobs(self)

    @cached_property
    def mcp_clients(self) -> McpClients:
        return McpClients(self)

    @cached_property
    def memories(self) -> Memories:
        return Memories(self)

    @cached_property
    def messages(self) -> Messages:
        return Messages(self)

    @cached_property
    def notices(self) -> Notices:
        return Notices(self)

    @cached_property
    def personal_data(self) -> PersonalData:
        return PersonalData(self)

    @cached_property
    def questions(self) -> Questions:
        return Questions(self)

    @cached_property
    def queue(self) -> Queue:
        return Queue(self)

    @cached_property
    def rate_limits(self) -> RateLimits:
        return RateLimits(self)

    @cached_property
    def replies(self) -> Replies:
        return Replies(self)

    @cached_property
    def runs(self) -> Runs:
        return Runs(self)

    @cached_property
    def sessions(self) -> Sessions:
        return Sessions(self)

    @cached_property
    def spending(self) -> Spending:
        return Spending(self)

    @cached_property
    def stored_responses(self) -> StoredResponses:
        return StoredResponses(self)

    @cached_property
    def tasks(self) -> Tasks:
        return Tasks(self)

    @cached_property
    def tool_calls(self) -> ToolCalls:
        return ToolCalls(self)

    @cached_property
    def turns(self) -> Turns:
        return Turns(self)

    @cached_property
    def users(self) -> Users:
        return Users(self)
