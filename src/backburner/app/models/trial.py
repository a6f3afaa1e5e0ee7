"""Tests of models that are not in use yet, and the lists of what their servers offer."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from backburner.core.errors import EngineFailed
from backburner.ports import ModelTest, Trial, Trouble
from backburner.settings import Profile

if TYPE_CHECKING:
    from backburner.engine.trial import Target

#: Clients of the API wait for a minute. A local model may have to be loaded from disk first.
TRIAL_TIMEOUT_SECONDS = 45.0
LIST_TIMEOUT_SECONDS = 10.0
#: In a sentence.
MAX_MODELS_SHOWN = 20


async def try_profile(profile: Profile) -> Trial:
    """Send a short request to the model of a profile."""
    # Here, because a server needs its library at its first use only.
    from backburner.engine import trial  # noqa: PLC0415

    return await trial.try_model(_target(profile), timeout_seconds=TRIAL_TIMEOUT_SECONDS)


async def list_offered(profile: Profile) -> Sequence[str]:
    """List the models of a profile's server. Raises `EngineFailed` if it cannot tell them."""
    from backburner.engine import trial  # noqa: PLC0415

    if profile.engine == "demo":
        return ()
    return await trial.list_models(_target(profile), timeout_seconds=LIST_TIMEOUT_SECONDS)


async def run_test(profile: Profile, *, is_listed: bool = False) -> ModelTest:
    """Try the model of a profile, and name the models of its server where that helps.

    `is_listed`: it was chosen from them.
    """
    clock = asyncio.get_running_loop().time
    began = clock()
    trial = await try_profile(profile)
    latency = timedelta(seconds=clock() - began)
    if trial.trouble is Trouble.MODEL and (offered := await find_offered(profile)):
        trial = replace(trial, message=f"{trial.message} There are: {_join(offered)}.")
        return ModelTest(trial=trial, latency=latency, offered=offered)
    if trial.works and profile.engine == "openai" and not is_listed:
        offered = await find_offered(profile)
        if offered and profile.model not in offered:
            # Some answer to any name with the one model that they have.
            note = f"The server does not list {profile.model}. It lists: {_join(offered)}."
            return ModelTest(trial=trial, latency=latency, offered=offered, note=note)
    return ModelTest(trial=trial, latency=latency)


async def find_offered(profile: Profile) -> Sequence[str]:
    """List the models of a server; none if it cannot tell them."""
    with suppress(EngineFailed):
        return await list_offered(profile)
    return ()


def _join(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_MODELS_SHOWN} more" if len(names) > MAX_MODELS_SHOWN else ""
    return ", ".join(names[:MAX_MODELS_SHOWN]) + more


def _target(profile: Profile) -> "Target":
    from backburner.engine.trial import Target  # noqa: PLC0415

    return Target(
        engine=profile.engine,
        model=profile.model,
        address=profile.address,
        key=profile.key.get_secret_value() if profile.key else None,
        token=profile.token.get_secret_value() if profile.token else None,
    )
