"""`/api/push`: push messages to browsers."""

from fastapi import APIRouter, Request

from backburner.actions.channels import push
from backburner.api.http.auth import Reader, Writer
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.openapi import BODY_ERRORS, error_responses
from backburner.api.http.origins import get_origin
from backburner.api.http.pages import PageOut
from backburner.api.schemas.channels.push import (
    NewPushSubscriptionBody,
    PushIdPath,
    PushOut,
    PushSubscriptionOut,
    PushTestOut,
)
from backburner.core.channels.push import describe_browser

router = APIRouter(prefix="/api/push", tags=["push"])


@router.get("", summary="Show the key for push messages")
async def show_push(request: Request, deps: AppDeps, caller: Reader) -> PushOut:
    """Tell whether browsers can take push messages at this address, and for which key.

    A page asks its browser for a subscription with this key, and for another one if it has one
    with another key.
    """
    del caller
    return PushOut.of(await push.read_state(deps, get_origin(request)))


@router.get("/subscriptions", summary="List browsers that take push messages")
async def list_push_subscriptions(deps: AppDeps, caller: Reader) -> PageOut[PushSubscriptionOut]:
    """List the browsers that are told of your notices while no page is open, on one page."""
    found = await push.list_subscriptions(deps, caller.user)
    return PageOut(items=[PushSubscriptionOut.of(one, caller) for one in found], next=None)


@router.post(
    "/subscriptions",
    summary="Send push messages to this browser",
    status_code=201,
    responses=error_responses(429),
)
async def subscribe_to_push(
    body: NewPushSubscriptionBody, request: Request, deps: AppDeps, caller: Writer
) -> PushSubscriptionOut:
    """Send your notices to the browser of this session, until the session ends.

    The body is what the browser's `PushSubscription.toJSON()` gives, and a label. The same endpoint
    again replaces its keys and session.
    """
    label = body.label or describe_browser(request.headers.get("user-agent", ""))
    made = await push.subscribe(deps, caller, body.with_label(label))
    return PushSubscriptionOut.of(made, caller)


@router.delete(
    "/subscriptions/{subscription_id}",
    summary="Send a browser no more push messages",
    status_code=204,
    responses=error_responses(*BODY_ERRORS),
)
async def remove_push_subscription(
    subscription_id: PushIdPath, deps: AppDeps, caller: Writer
) -> None:
    """Send no more push messages to a browser."""
    await push.remove(deps, caller.user, subscription_id)


@router.post(
    "/subscriptions/{subscription_id}/test",
    summary="Try a browser",
    responses=error_responses(*BODY_ERRORS),
)
async def test_push_subscription(
    subscription_id: PushIdPath, deps: AppDeps, caller: Writer
) -> PushTestOut:
    """Send a message to one browser, and tell what its push service says."""
    return PushTestOut.of(await push.send_test(deps, caller.user, subscription_id))
