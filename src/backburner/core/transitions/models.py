"""Changes of the model that a conversation works with."""

from dataclasses import replace

from backburner.core import routing
from backburner.core.conversation import Conversation, Kind, Status
from backburner.core.errors import Conflict
from backburner.core.routing import AfterDemo, Routes
from backburner.core.transitions.shared_changes import refuse_archived
from backburner.core.transitions.step import NewMessage, Step, system_message


def with_model(conversation: Conversation, routes: Routes, requested: str | None) -> Conversation:
    """Set the profile. A session belongs to one profile, so another starts from the messages."""
    refuse_archived(conversation)
    if conversation.kind is Kind.JOB:
        raise Conflict(
            "The model of a job cannot be changed.", hint="Start another job with that model."
        )
    after = routing.assign(replace(conversation, requested_profile=requested), routes)
    return after if after.profile == conversation.profile else replace(after, session=None)


def model_note(before: Conversation, after: Conversation) -> tuple[NewMessage, ...]:
    if before.profile == after.profile:
        return ()
    return (system_message(f"The model was changed to {after.profile}.", own=True),)


def leave_demo(conversation: Conversation, after_demo: AfterDemo) -> Step | None:
    """Move work that began with the demo to the model that was set up since; None: it stays."""
    profile = routing.profile_after_demo(conversation, after_demo)
    if profile is None or conversation.status is Status.ARCHIVED:
        return None
    note = system_message(f"This began with the demo. It uses {profile} from now on.")
    return Step(conversation=replace(conversation, profile=profile, session=None), messages=(note,))
