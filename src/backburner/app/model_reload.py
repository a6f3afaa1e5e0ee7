"""Reads the profiles again while the program runs, and puts them in place.

Only profiles, their roles and prices change; other settings wait for a restart. The only place
where `Deps` changes after the start.
"""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from backburner import log
from backburner.app.build import App, make_seats
from backburner.app.engines import closer
from backburner.app.machines import Machines, rebuild_engines
from backburner.core.errors import BackburnerError, Conflict
from backburner.ports import Engine, Hint, HintKind
from backburner.settings import PriceList, Settings

#: The settings that are taken over.
RELOADED = ("profiles", "profile", "background_profile", "prices")

_log = structlog.get_logger(__name__)


class ModelReloader:
    """`load_settings` reads all sources as at the start; `command` is how the user calls us."""

    def __init__(
        self, app: App, machines: Machines, load_settings: Callable[[], Settings], command: str
    ) -> None:
        self._app = app
        self._machines = machines
        self._settings = app.settings
        self._load_settings = load_settings
        self._command = command
        self._lock = asyncio.Lock()
        self._retiring = set[asyncio.Task[None]]()

    @property
    def settings(self) -> Settings:
        """The settings, with the profiles that are in use."""
        return self._settings

    async def reload(self) -> bool:
        """Use the profiles as they are now; False: nothing has changed.

        An error changes nothing.
        """
        async with self._lock:
            try:
                built = await asyncio.to_thread(self._build)
            except BackburnerError as error:
                raise Conflict(
                    f"The models were not changed: {error.message}", hint=error.hint
                ) from error
            if built is None:
                return False
            settings, machines = built
            replaced = _replaced(self._machines, machines)
            self._settings, self._machines = settings, machines
            self._put_in_place()
            self._retire(replaced)
            # Whatever was wrong with a model may be mended.
            names = [*machines.engines]
            await self._app.database.transact(lambda tx: tx.outages.probe_soon(names))
            self._app.bus.hint(Hint(HintKind.WORK))
            _log.info("models.reloaded", profiles=names, chat=machines.default_profile)
            return True

    async def follow_hints(self) -> None:
        """Reload whenever another process has."""
        with self._app.bus.listen(HintKind.MODELS) as listener:
            while True:
                await listener.take()
                try:
                    await self.reload()
                except BackburnerError as error:
                    _log.warning("models.reload_failed", error=str(error))

    async def close(self) -> None:
        """Close the engines that were built after the start, and those that were replaced."""
        for task in self._retiring:
            task.cancel()
        await asyncio.gather(*self._retiring, return_exceptions=True)
        await closer(self._machines.engines.values())()

    def _build(self) -> tuple[Settings, Machines] | None:
        loaded = self._load_settings()
        changes = {name: getattr(loaded, name) for name in RELOADED}
        if all(getattr(self._settings, name) == value for name, value in changes.items()):
            return None
        settings = self._settings.model_copy(update=changes)
        # Before anything can fail with one of them in its message.
        log.add_secrets(settings.secrets())
        return settings, rebuild_engines(self._machines, self._settings, settings, self._command)

    def _put_in_place(self) -> None:
        deps, machines, settings = self._app.deps, self._machines, self._settings
        # Engines first: threads of transactions may read in between.
        deps.engines, deps.model_servers = machines.engines, machines.model_servers
        deps.injection_proof, deps.claude = machines.injection_proof, machines.claude
        deps.price_of = PriceList(
            settings.prices, settings.profiles.values(), now=self._app.clock.now
        ).find
        deps.default_profile, deps.routes = machines.default_profile, machines.routes
        self._app.worker.use_seats(make_seats(settings, machines), machines.default_profile)

    def _retire(self, engines: Sequence[Engine]) -> None:
        """Close replaced engines once the runs in progress have ended, which may use them."""
        if not engines:
            return
        runs = [run.task for run in self._app.worker.underway if run.task is not None]

        async def close_after_runs() -> None:
            try:
                if runs:
                    await asyncio.wait(runs)
            finally:
                await closer(engines)()

        task = asyncio.create_task(close_after_runs())
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)


def _replaced(before: Machines, after: Machines) -> list[Engine]:
    kept = {id(engine) for engine in after.engines.values()}
    return [engine for engine in before.engines.values() if id(engine) not in kept]
