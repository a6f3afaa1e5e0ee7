"""Push messages to browsers: the server's key, subscriptions, and a message to try one."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from backburner.actions.deps import Deps
from backburner.core.accounts import Caller, CredentialKind
from backburner.core.channels.push import (
    MAX_SUBSCRIPTIONS,
    PUSH,
    PushSubscription,
    check_label,
    why_impossible,
)
from backburner.core.errors import ChannelFailed, Conflict, LimitReached, NotAllowed, TargetGone
from backburner.core.ids import NoticeId, PushId, UserId, new_push_id
from backburner.ports import ChannelMessage, EventKind, Tx

#: The name of the server's private key in the vault.
SECRET = "push/server_key"  # noqa: S105 (its name)
#: The tag of messages with which users try a browser: each replaces the one before.
TEST_TAG = NoticeId("test")


@dataclass(frozen=True, slots=True, kw_only=True)
class PushState:
    """The facts with which a page asks its browser for a subscription."""

    #: The server's public key.
    key: bytes
    #: Why pages of this address cannot take messages; empty: they can.
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSubscription:
    """A subscription as a browser gives it to its page."""

    endpoint: str = field(repr=False)
    receiver_key: bytes = field(repr=False)
    auth: bytes = field(repr=False)
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PushTest:
    """The result of a test message to a browser."""

    #: What the push service said; None: it took the message.
    problem: str | None = None
    hint: str = ""
    #: The subscription has ended, and was removed.
    is_gone: bool = False


async def read_state(deps: Deps, origin: str) -> PushState:
    """Tell whether pages of an origin can take messages, and for which key."""
    return PushState(key=await _public_key(deps), problem=why_impossible(origin))


async def list_subscriptions(deps: Deps, user: UserId) -> Sequence[PushSubscription]:
    return await deps.store.read(lambda tx: tx.push_subscriptions.list(user))


async def subscribe(deps: Deps, caller: Caller, new: NewSubscription) -> PushSubscription:
    """Send the notices of a user to the browser that asks; again: its session and keys are new."""
    if caller.kind is not CredentialKind.SESSION:
        raise NotAllowed(
            "Only a browser can take push messages.",
            hint="Sign in with it, and turn notifications on there.",
        )
    label = check_label(new.label)
    await asyncio.to_thread(deps.push.crypto.check_receiver, new.receiver_key, new.auth)
    await deps.push.service.check(new.endpoint)
    server_key = await _public_key(deps)
    subscription_id = new_push_id()

    def work(tx: Tx) -> PushSubscription:
        tx.users.lock(caller.user)
        subscription = PushSubscription(
            id=subscription_id,
            user_id=caller.user,
            session=caller.credential,
            endpoint=new.endpoint,
            receiver_key=new.receiver_key,
            auth=new.auth,
            server_key=server_key,
            label=label,
            created_at=tx.now,
        )
        earlier = tx.push_subscriptions.find(caller.user, new.endpoint)
        if earlier is not None:
            subscription = replace(subscription, id=earlier.id, created_at=earlier.created_at)
        known = {one.id for one in tx.push_subscriptions.list(caller.user)}
        if len(known - {subscription.id}) >= MAX_SUBSCRIPTIONS:
            raise LimitReached(
                f"Limit reached: {MAX_SUBSCRIPTIONS} browsers.", hint="Remove one first."
            )
        tx.push_subscriptions.put(subscription)
        tx.changed(caller.user, None, EventKind.USER)
        return subscription

    return await deps.store.transact(work)


async def remove(deps: Deps, user: UserId, subscription: PushId) -> None:
    def work(tx: Tx) -> None:
        tx.push_subscriptions.remove(user, subscription)
        tx.changed(user, None, EventKind.USER)

    await deps.store.transact(work)


async def send_test(deps: Deps, user: UserId, subscription: PushId) -> PushTest:
    """Send a message to one browser, and return what its push service says."""
    await deps.store.read(lambda tx: tx.push_subscriptions.load(user, subscription))
    channel = deps.channels.get(PUSH)
    if channel is None:
        raise Conflict("This process sends no push messages.")
    message = ChannelMessage(
        user_id=user,
        target=subscription,
        key=f"test:{subscription}",
        title="Backburner",
        text="Notifications work in this browser.",
        kind=None,
        notice_id=TEST_TAG,
        address="/",
    )
    try:
        await channel.send(message)
    except TargetGone as error:
        return PushTest(problem=error.message, hint=error.hint, is_gone=True)
    except ChannelFailed as error:
        return PushTest(problem=error.message, hint=error.hint)
    return PushTest()


def load_server_key(tx: Tx, deps: Deps) -> bytes | None:
    """Load the server's private key; None: nobody has needed it yet."""
    return deps.vault.load(tx.secrets, None, SECRET)


async def _public_key(deps: Deps) -> bytes:
    key = await deps.store.read(lambda tx: load_server_key(tx, deps))
    if key is None:
        made = await asyncio.to_thread(deps.push.crypto.make_key)
        key = await deps.store.transact(lambda tx: _add_key(tx, deps, made))
    return await asyncio.to_thread(deps.push.crypto.public_key, key)


def _add_key(tx: Tx, deps: Deps, made: bytes) -> bytes:
    """Store the server's key; return that of another process if it was first."""
    if deps.vault.add(tx.secrets, None, SECRET, made):
        return made
    return load_server_key(tx, deps) or made
