"""What the store promises, whatever database is behind it: one function for each promise.

Each takes a `Scene` on a database with all tables and no row, and raises where it is not kept.
"""

from collections.abc import Callable
from inspect import isfunction

from support.contracts.store import (
    browsers,
    claiming,
    clients,
    commits,
    conversations,
    discovery,
    fairness,
    holding,
    memories,
    memory,
    operating,
    profiles,
    pruning,
    questions,
    receipts,
    rescue,
    slots,
    telling,
    values,
    waiting,
)
from support.contracts.store.work import (
    activity,
    attachments,
    awaited,
    calendars,
    connection_calls,
    connection_sign_ins,
    connections,
    files,
    folders,
    job_lists,
    job_trees,
    marks,
    run_pages,
    secrets,
)
from support.stage.scene import Scene

Promise = Callable[[Scene], None]

_MODULES = (
    *(conversations, values, waiting, questions, telling, browsers, memory, memories, receipts),
    *(
        operating,
        pruning,
        clients,
        job_lists,
        files,
        attachments,
        folders,
        connections,
        activity,
        secrets,
    ),
    *(connection_calls, connection_sign_ins, marks, run_pages, job_trees, calendars),
    *(awaited, claiming, profiles, holding, rescue, commits, slots, fairness, discovery),
)
#: Every public function of these modules, by its name.
PROMISES: dict[str, Promise] = {
    name: value
    for module in _MODULES
    for name, value in vars(module).items()
    if isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
}
