"""Models as the page shows them."""

from support.stage.make import NOON

from backburner.actions.models.setup import ModelSetupState
from backburner.ports import ModelKind, ModelList, ModelProfile
from backburner.web.display import Display
from backburner.web.views.account.model_setup import make_forms, show_setup

DISPLAY = Display(NOON, "UTC")
DEMO = ModelProfile(
    name="demo",
    kind=ModelKind.DEMO,
    model="",
    address="",
    has_key=False,
    seats=None,
    can_change=False,
)
CLAUDE = ModelProfile(
    name="claude",
    kind=ModelKind.CLAUDE_KEY,
    model="claude-x",
    address="https://api.example.org",
    has_key=True,
    seats=None,
    can_change=False,
)


def test_a_model_that_others_set_says_so_and_cannot_be_changed() -> None:
    models = ModelList(
        profiles=[DEMO, CLAUDE],
        chat="claude",
        background=None,
        chat_obstacle="The model of chats is set by BACKBURNER_MODEL.",
    )

    shown = show_setup(ModelSetupState(models, {}), DISPLAY)

    demo, claude = shown.models
    assert (demo.is_demo, demo.form, demo.roles) == (True, None, "")
    assert claude.line == (
        "Claude, with an API key · claude-x · api.example.org"
        " · Set outside of this page, in the settings of the server."
    )
    assert claude.form is None
    assert shown.obstacles == ["The model of chats is set by BACKBURNER_MODEL."]
    assert (shown.can_add, shown.can_choose_chat, shown.can_choose_background) == (
        True,
        False,
        True,
    )


def test_where_nothing_can_be_stored_nothing_is_offered_and_the_reason_is_told_once() -> None:
    reason = "The models of this server cannot be changed here."
    models = ModelList(
        profiles=[DEMO],
        chat="demo",
        background=None,
        obstacle=reason,
        chat_obstacle=reason,
        background_obstacle=reason,
    )

    shown = show_setup(ModelSetupState(models, {}), DISPLAY)

    assert shown.obstacles == [reason]
    assert shown.forms == []
    assert not shown.can_add


def test_new_models_get_names_that_are_free() -> None:
    forms = {form.id: form for form in make_forms(["demo", "claude", "claude-2"], is_first=False)}

    assert forms["claude-key"].name == "claude-3"
    assert forms["local"].name == "local"
    assert not any(form.for_chats for form in forms.values())
    assert [form.for_chats for form in make_forms([], is_first=True)] == [True] * 4
