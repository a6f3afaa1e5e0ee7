"""What `backburner doctor` looks at of the models: what each needs, and whether it answers."""

import asyncio
from urllib.parse import urlsplit

from backburner.app.doctor import look_at_engine, try_profile
from backburner.cli.findings import Finding, Mark
from backburner.cli.models import describe
from backburner.core.errors import MachineFailed
from backburner.ports import Trouble
from backburner.settings import Profile, Settings, is_near


async def look_at_models(settings: Settings, *, offline: bool) -> list[Finding]:
    """Look at every profile there is, all at the same time, and at who uses which."""
    found = await asyncio.gather(
        *(_look_at(profile, offline=offline) for profile in settings.profiles.values())
    )
    routes = settings.routes
    words = f"chats use {routes.chat}; background work uses {routes.background or routes.chat}."
    uses = Finding("who uses which", words)
    if settings.profiles[routes.chat].engine == "demo":
        hint = "To use a real one, run: backburner setup"
        uses = Finding("who uses which", words, Mark.NOTE, hint)
    return [*found, uses]


async def _look_at(profile: Profile, *, offline: bool) -> Finding:
    what = f"profile {profile.name}"
    try:
        with_what = await look_at_engine(profile.engine)
        parts = [f"{describe(profile)}."]
        if with_what:
            parts.append(f"{with_what}.")
        if offline or profile.engine == "demo":
            return _with_notes(profile, Finding(what, " ".join(parts)))
        trial = await try_profile(profile)
    except MachineFailed as error:
        return Finding(what, error.message, Mark.BROKEN, error.hint)
    words = " ".join([*parts, trial.words])
    if trial.works:
        return _with_notes(profile, Finding(what, words))
    mark = Mark.NOTE if trial.trouble is Trouble.LIMIT else Mark.BROKEN
    return Finding(what, words, mark, trial.hint)


def _with_notes(profile: Profile, finding: Finding) -> Finding:
    is_open = urlsplit(profile.address).scheme == "http" and not is_near(profile.address)
    if is_open and profile.secret:
        hint = "Its key can be read on the way there: use an https address."
        return Finding(finding.what, finding.words, Mark.NOTE, hint)
    return finding
