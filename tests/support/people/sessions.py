"""Browsers that are signed in, without the API."""

from backburner.actions.accounts import credentials, sign_in
from backburner.core.accounts import Caller
from backburner.core.ids import UserId
from support.stage.make import USER
from support.stage.stage import Stage


async def start_session(stage: Stage, user: UserId = USER) -> Caller:
    stage.user(user)
    session = stage.database.run(lambda tx: sign_in.start_session(tx, user))
    caller = await credentials.identify(stage.deps, session.secret)
    assert caller is not None
    return caller
