"""An open transaction: every group of rows under its name."""

from functools import cached_property

from backburner.store.accounts.accounts import Accounts
from backburner.store.accounts.audit import Audit
from backburner.store.accounts.connection_sign_ins import StartedSignIns, TokenLeases
from backburner.store.accounts.credentials import Credentials
from backburner.store.accounts.mcp_clients import McpClients
from backburner.store.accounts.personal_data import PersonalData
from backburner.store.accounts.rate_limit import RateLimits
from backburner.store.accounts.users import Users
from backburner.store.channels.push_subscriptions import PushSubscriptions
from backburner.store.context import Context
from backburner.store.queries.away import Away
from backburner.store.queries.browse import Browse
from backburner.store.queries.discovery import Discovery
from backburner.store.queries.jobs import Jobs
from backburner.store.queries.operations import Operations
from backburner.store.queries.replies import Replies
from backburner.store.queries.tasks import Tasks
from backburner.store.queue.claims import Queue
from backburner.store.queue.outages import Outages
from backburner.store.queue.turns import Turns
from backburner.store.records.calls.connection_calls import ConnectionCalls
from backburner.store.records.calls.tool_calls import ToolCalls
from backburner.store.records.connections import Connections
from backburner.store.records.conversations import Conversations
from backburner.store.records.files import Files
from backburner.store.records.folders import Folders
from backburner.store.records.grants import Grants
from backburner.store.records.idempotency import StoredResponses
from backburner.store.records.inbox import Inbox
from backburner.store.records.marks import Marks
from backburner.store.records.memories import Memories
from backburner.store.records.messages import Messages
from backburner.store.records.notices import Deliveries, Notices
from backburner.store.records.questions import Questions
from backburner.store.records.runs import Runs
from backburner.store.records.secrets import Secrets
from backburner.store.records.sessions import Sessions
from backburner.store.records.spending import Spending
from backburner.store.records.summaries import Summaries


class Tx(Context):
    accounts = cached_property(Accounts)
    audit = cached_property(Audit)
    away = cached_property(Away)
    browse = cached_property(Browse)
    connection_calls = cached_property(ConnectionCalls)
    connections = cached_property(Connections)
    conversations = cached_property(Conversations)
    credentials = cached_property(Credentials)
    deliveries = cached_property(Deliveries)
    discovery = cached_property(Discovery)
    files = cached_property(Files)
    folders = cached_property(Folders)
    grants = cached_property(Grants)
    inbox = cached_property(Inbox)
    jobs = cached_property(Jobs)
    marks = cached_property(Marks)
    mcp_clients = cached_property(McpClients)
    memories = cached_property(Memories)
    messages = cached_property(Messages)
    notices = cached_property(Notices)
    operations = cached_property(Operations)
    outages = cached_property(Outages)
    personal_data = cached_property(PersonalData)
    push_subscriptions = cached_property(PushSubscriptions)
    questions = cached_property(Questions)
    queue = cached_property(Queue)
    rate_limits = cached_property(RateLimits)
    replies = cached_property(Replies)
    runs = cached_property(Runs)
    secrets = cached_property(Secrets)
    sessions = cached_property(Sessions)
    spending = cached_property(Spending)
    started_sign_ins = cached_property(StartedSignIns)
    stored_responses = cached_property(StoredResponses)
    summaries = cached_property(Summaries)
    tasks = cached_property(Tasks)
    token_leases = cached_property(TokenLeases)
    tool_calls = cached_property(ToolCalls)
    turns = cached_property(Turns)
    users = cached_property(Users)
