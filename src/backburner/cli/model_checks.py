"""Doctor's checks of the models: whether the engine is installed and the model responds."""

import asyncio
from urllib.parse import urlsplit

from backburner.app.doctor import check_engine
from backburner.app.models.trial import try_profile
from backburner.cli.findings import Finding, Level
from backburner.cli.profile_summary import summarize
from backburner.core.errors import MachineFailed
from backburner.ports import Trouble
from backburner.settings import Profile, Settings, is_near


async def check_models(settings: Settings, *, offline: bool) -> list[Finding]:
    """Check all profiles concurrently, and report which of them is used."""
    findings = await asyncio.gather(
        *(_check_profile(profile, offline=offline) for profile in settings.profiles.values())
    )
    routes = settings.routes
    message = f"chats use {routes.chat}; background work uses {routes.background or routes.chat}."
    if settings.profiles[routes.chat].engine == "demo":
        hint = "To use a real model, run `backburner setup`."
        return [*findings, Finding("models in use", message, Level.NOTE, hint)]
    return [*findings, Finding("models in use", message)]


async def _check_profile(profile: Profile, *, offline: bool) -> Finding:
    check = f"profile {profile.name}"
    try:
        version = await check_engine(profile.engine)
        parts = [f"{summarize(profile)}."]
        if version:
            parts.append(f"{version}.")
        if offline or profile.engine == "demo":
            return _with_note(profile, Finding(check, " ".join(parts)))
        trial = await try_profile(profile)
    except MachineFailed as error:
        return Finding(check, error.message, Level.PROBLEM, error.hint)
    message = " ".join([*parts, trial.message])
    if trial.works:
        return _with_note(profile, Finding(check, message))
    level = Level.NOTE if trial.trouble is Trouble.LIMIT else Level.PROBLEM
    return Finding(check, message, level, trial.hint)


def _with_note(profile: Profile, finding: Finding) -> Finding:
    is_plain = urlsplit(profile.address).scheme == "http" and not is_near(profile.address)
    if is_plain and profile.secret:
        hint = "Its key is sent unencrypted: use an https address."
        return Finding(finding.check, finding.message, Level.NOTE, hint)
    return finding
