"""Builds an engine for each profile. Its library is imported only if a profile needs it."""

from collections.abc import Awaitable, Callable, Iterable

from backburner.core.errors import BadSetting
from backburner.engine.demo.engine import DemoEngine
from backburner.engine.installed import need_library
from backburner.ports import Engine
from backburner.process.confinement import confinement_missing
from backburner.process.launcher import CleanLauncher
from backburner.settings import Profile, Settings


def build_engine(profile: Profile, settings: Settings, command: str) -> Engine:
    """Build an engine. `command` is how the user calls this program."""
    need_library(profile.engine)
    match profile.engine:
        case "claude":
            return _claude(profile, settings)
        case "openai":
            return _openai(profile, settings)
        case "demo":
            return DemoEngine(command)


def closer(engines: Iterable[Engine]) -> Callable[[], Awaitable[None]]:
    """Return a function that closes the engines that can be closed."""

    async def close_all() -> None:
        for engine in engines:
            close = getattr(engine, "close", None)
            if close is not None:
                await close()

    return close_all


def _claude(profile: Profile, settings: Settings) -> Engine:
    from backburner.engine.claude.engine import ClaudeEngine, ClaudeModel  # noqa: PLC0415

    key, token = profile.key, profile.token
    if token is not None:
        headers = {"authorization": f"Bearer {token.get_secret_value()}"}
    else:
        headers = {"x-api-key": key.get_secret_value() if key else ""}
    return ClaudeEngine(
        ClaudeModel(
            name=profile.model,
            address=profile.address,
            headers=headers,
            subscription=token is not None,
            stall=settings.stall,
        ),
        launcher=_launcher(settings),
        homes=settings.data / "agents",
        workspace=lambda user: settings.workspaces / user,
        builtins=tuple(settings.claude_tools),
        warm=settings.warm_chats,
        warm_for=settings.warm_for,
    )


def _launcher(settings: Settings) -> CleanLauncher:
    """Confine the Claude Code process; where this is impossible, its own tools are refused."""
    confined = settings.commands != "unconfined"
    if confined and (missing := confinement_missing()):
        if settings.claude_tools:
            raise BadSetting(
                f"The built-in tools of Claude Code cannot be confined here. {missing}",
                hint="Leave `claude_tools` empty, or set `commands` to unconfined.",
            )
        confined = False
    return CleanLauncher(confined=confined, readable=settings.readable, disk=settings.data)


def _openai(profile: Profile, settings: Settings) -> Engine:
    from backburner.engine.openai.engine import OpenAIEngine  # noqa: PLC0415
    from backburner.engine.openai.images import sees_images  # noqa: PLC0415

    return OpenAIEngine(
        model=profile.model,
        address=profile.address,
        key=profile.key.get_secret_value() if profile.key else "",
        sees_images=sees_images(profile.model) if profile.images is None else profile.images,
        stall=settings.stall,
    )
