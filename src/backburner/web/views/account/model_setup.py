"""Views of models: those that there are, and the kinds that can be set up."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from backburner.actions.models.profiles import ModelUse
from backburner.actions.models.setup import ModelSetupState
from backburner.core.run import FailureKind
from backburner.ports import ModelKind, ModelProfile
from backburner.web.display import Display
from backburner.web.rendering import fill, load_words

LOCAL_ADDRESS = "http://127.0.0.1:11434/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelForm:
    """A model to be entered: empty fields, or those of a profile that exists."""

    id: str
    kind: str
    title: str
    about: str
    name: str
    #: The profile that is changed; empty: a new one.
    profile: str = ""
    model: str = ""
    address: str = ""
    takes_address: bool = False
    has_key: bool = False
    needs_key: bool = False
    for_chats: bool = False
    for_background: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownModel:
    name: str
    title: str
    #: Kind, model and server.
    line: str
    roles: str
    burner: str
    #: What is wrong with it; empty: nothing.
    trouble: str
    is_demo: bool
    can_change: bool
    form: ModelForm | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownModels:
    models: Sequence[ShownModel]
    forms: Sequence[ModelForm]
    names: Sequence[str]
    chat: str
    background: str
    obstacles: Sequence[str]
    can_add: bool
    can_choose_chat: bool
    can_choose_background: bool


def show_setup(state: ModelSetupState, display: Display) -> ShownModels:
    models = state.models
    names = [profile.name for profile in models.profiles]
    kinds = {profile.name: profile.kind for profile in models.profiles}
    is_demo = kinds.get(models.chat) is ModelKind.DEMO
    obstacles = (models.obstacle, models.chat_obstacle, models.background_obstacle)
    return ShownModels(
        models=[_show_model(profile, state, display) for profile in models.profiles],
        forms=[] if models.obstacle else make_forms(names, is_first=is_demo),
        names=names,
        chat=models.chat,
        background=models.background or "",
        obstacles=list(dict.fromkeys(one for one in obstacles if one)),
        can_add=not models.obstacle,
        can_choose_chat=not models.chat_obstacle,
        can_choose_background=not models.background_obstacle,
    )


def make_forms(taken: Collection[str], *, is_first: bool) -> Sequence[ModelForm]:
    """Make the cards of what can be set up; the first model is used for everything."""
    words = load_words().model

    def make(
        id_: str, kind: ModelKind, title: str, about: str, name: str, **more: object
    ) -> ModelForm:
        free = _free_name(name, taken)
        common = {"for_chats": is_first, "for_background": False, **more}
        return ModelForm(id=id_, kind=kind.value, title=title, about=about, name=free, **common)  # type: ignore[arg-type]

    claude_key, claude_token = ModelKind.CLAUDE_KEY, ModelKind.CLAUDE_TOKEN
    return [
        make(
            "claude-key",
            claude_key,
            words["kind_claude-key"],
            words["about_claude-key"],
            "claude",
            needs_key=True,
        ),
        make(
            "claude-token",
            claude_token,
            words["kind_claude-token"],
            words["about_claude-token"],
            "claude",
            needs_key=True,
        ),
        make(
            "local",
            ModelKind.OPENAI,
            words.local,
            words.local_about,
            "local",
            takes_address=True,
            address=LOCAL_ADDRESS,
        ),
        make(
            "hosted",
            ModelKind.OPENAI,
            words.hosted,
            words.hosted_about,
            "hosted",
            takes_address=True,
            needs_key=True,
        ),
    ]


def show_uses(uses: Sequence[ModelUse], demo: Collection[str]) -> Sequence[ShownModel]:
    """Show the models as every user sees them: names, and what each is used for."""
    words = load_words().model
    return [
        ShownModel(
            name=use.profile,
            title=words.demo if use.profile in demo else use.profile,
            line=words.demo_about if use.profile in demo else "",
            roles=_roles(chats=use.chats, background=use.background),
            burner="rest",
            trouble="",
            is_demo=use.profile in demo,
            can_change=use.own_key,
            form=None,
        )
        for use in uses
    ]


def _show_model(profile: ModelProfile, state: ModelSetupState, display: Display) -> ShownModel:
    words, models = load_words().model, state.models
    is_demo = profile.kind is ModelKind.DEMO
    outage = state.outages.get(profile.name)
    trouble = ""
    if outage is not None:
        is_refused = outage.kind is FailureKind.ACCESS_DENIED
        since, text = display.moment(outage.since), words.refused if is_refused else words.outage
        next_try = fill(words.next_try, time=display.until(outage.until))
        trouble = f"{fill(text, since=since, trouble=outage.message)} {next_try}"
    key = words.with_key if profile.has_key else words.without_key
    kind = words[f"kind_{profile.kind.value}"] if not is_demo else ""
    parts = [kind, profile.model, urlsplit(profile.address).netloc]
    if profile.kind is ModelKind.OPENAI:
        parts = [profile.model, urlsplit(profile.address).netloc, key]
    if not profile.can_change and not is_demo:
        parts.append(words.in_settings)
    return ShownModel(
        name=profile.name,
        title=words.demo if is_demo else profile.name,
        line=words.demo_about if is_demo else " · ".join(part for part in parts if part),
        roles=_roles(
            chats=profile.name == models.chat,
            background=profile.name == (models.background or models.chat),
            is_fallback=models.background is None,
        ),
        burner="failed" if outage is not None else "done",
        trouble=trouble,
        is_demo=is_demo,
        can_change=profile.can_change,
        form=_form_of(profile) if profile.can_change else None,
    )


def _form_of(profile: ModelProfile) -> ModelForm:
    is_openai = profile.kind is ModelKind.OPENAI
    return ModelForm(
        id=f"of-{profile.name}",
        kind=profile.kind.value,
        title=profile.name,
        about="",
        name=profile.name,
        profile=profile.name,
        model=profile.model,
        address=profile.address if is_openai else "",
        takes_address=is_openai,
        has_key=profile.has_key,
    )


def describe_use(use: ModelUse) -> str:
    return _roles(chats=use.chats, background=use.background)


def _roles(*, chats: bool, background: bool, is_fallback: bool = False) -> str:
    """Name what a model is used for; `is_fallback`: for background work, as no other is chosen."""
    words = load_words().model
    if not (chats or background):
        return ""
    both = words.also if is_fallback else words["and"]
    roles = both if chats and background else words.chats if chats else words.background
    return fill(words.used_for, roles=roles)


def _free_name(name: str, taken: Collection[str]) -> str:
    names = (name if number == 1 else f"{name}-{number}" for number in range(1, len(taken) + 2))
    return next(one for one in names if one not in taken)
