"""What has to be true after every step, and once everything has settled.

Written against the rows, not with the store's own statements: a fault in those must not hide here.
"""

import json
from collections import defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta

from backburner.core.run import RunKind
from backburner.core.schedule import slots
from backburner.core.schedule.serialize import from_json
from backburner.store.types import EPOCH
from support.simulator.world import CAP, Violation, World


def require(truth: object, what: str) -> None:
    if not truth:
        raise Violation(what)


def check(world: World) -> None:
    """See that turns, runs, proofs, inbox and outbox agree."""
    running = world.rows("SELECT conversation_id, id, epoch FROM runs WHERE status = 'running'")
    held = world.rows("SELECT id, turn_run, epoch FROM conversations WHERE turn_run IS NOT NULL")
    require(sorted(running) == sorted(held), "a run goes on without its turn, or two at once")
    known = {(turn.conversation_id, turn.run_id, turn.epoch) for turn in world.holders.values()}
    require(set(held) == known, "a turn is held by somebody else than who claimed it")
    proofs = world.rows("SELECT run_id, epoch FROM outcomes")
    require(set(proofs) == world.commits, "commits and their proofs differ")
    too_many = world.rows(
        "SELECT user_id FROM runs WHERE status = 'running' AND unattended"
        " GROUP BY user_id HAVING count(*) > ?",
        CAP,
    )
    require(not too_many, "a user has more background runs than the cap")
    _check_served(world)
    _check_waits(world)
    _check_requests(world)
    twice = world.rows(
        "SELECT content FROM messages WHERE run_id IS NOT NULL AND role = 'assistant'"
        " GROUP BY content HAVING count(*) > 1"
    )
    require(not twice, "an outcome was written twice")
    stray = world.rows(
        "SELECT 1 FROM tool_calls t JOIN runs r ON r.id = t.run_id"
        " WHERE t.state = 'started' AND r.status <> 'running'"
    )
    require(not stray, "a call is under way in a run that is not")


def _check_served(world: World) -> None:
    committed = {run for run, _ in world.commits} | world.given_up
    served = world.rows("SELECT DISTINCT served_by FROM inbox WHERE served_by IS NOT NULL")
    require({run for (run,) in served} <= committed, "an item was served by a run that was not")
    # A reply that is given up at its third crash serves what it was to answer.
    lost = world.rows(
        "SELECT i.id FROM inbox i JOIN runs r ON r.id = i.served_by"
        " WHERE r.failure_kind = 'crashed' AND r.kind = 'background'"
    )
    require(not lost, "an item was served by a run that never came to its end")


def _check_waits(world: World) -> None:
    latest = (world.clock.latest - EPOCH) // timedelta(microseconds=1)
    awaited = world.rows(
        "SELECT w.run_id FROM waits w JOIN conversations j ON j.id = w.job_id"
        " WHERE w.settled_at IS NULL AND j.status <> 'background'"
    )
    require(not awaited, "a run waits for a job that has settled")
    late = world.rows(
        "SELECT r.id FROM runs r WHERE r.status = 'queued' AND r.wait_until > ?"
        " AND EXISTS (SELECT 1 FROM waits w WHERE w.run_id = r.id)"
        " AND (NOT EXISTS"
        " (SELECT 1 FROM waits w WHERE w.run_id = r.id AND w.settled_at IS NULL)"
        " OR EXISTS (SELECT 1 FROM inbox i WHERE i.conversation_id = r.conversation_id"
        " AND i.served_at IS NULL AND i.from_person))",
        latest,
    )
    require(not late, "a run waits that could go on")
    awake = world.rows(
        "SELECT w.run_id FROM waits w JOIN runs r ON r.id = w.run_id WHERE r.status = 'running'"
    )
    require(not awake, "a run waits while it is under way")


def _check_requests(world: World) -> None:
    """See that a conversation knows which profile its next runs were asked for.

    Of several it may be any: the clock that tells which one is the last may have been set back.
    """
    asked = defaultdict[tuple[str, str], set[str]](set)
    for which, kind, content in world.rows(
        "SELECT i.conversation_id, i.run_kind, i.content FROM inbox i"
        " LEFT JOIN runs r ON r.id = i.served_by"
        " WHERE i.served_at IS NULL"
        " OR (r.status IN ('queued', 'running') AND r.cancel_requested_at IS NULL)"
    ):
        if profile := json.loads(content).get("profile"):
            asked[which, kind].add(profile)
    for which, for_reply, for_work in world.rows(
        "SELECT id, reply_profile, work_profile FROM conversations"
    ):
        expected = asked[which, "reply"] or {""}
        require(for_reply in expected, f"a reply is asked for as {expected}, not {for_reply!r}")
        # It is dropped with a queued run, though an item may wait that asks for it, too.
        expected = asked[which, "background"] | {""}
        require(for_work in expected, f"work is asked for as {expected}, not {for_work!r}")


def someone_waits(world: World) -> bool:
    """See whether a reply could be given to a person right now."""
    return bool(
        world.rows(
            "SELECT 1 FROM inbox i JOIN conversations c ON c.id = i.conversation_id"
            " WHERE i.served_at IS NULL AND i.from_person AND c.turn_run IS NULL"
            " AND c.status <> 'archived'"
        )
    )


def claimable_work(world: World) -> set[str]:
    """Find, from the rows and the rules, every conversation with background work to claim."""
    now = (world.clock.now - EPOCH) // timedelta(microseconds=1)
    busy = dict(
        world.rows(
            "SELECT user_id, count(*) FROM runs WHERE status = 'running' AND unattended"
            " GROUP BY user_id"
        )
    )
    found = set()
    for which, user, status, next_run_at in world.rows(
        "SELECT id, user_id, status, next_run_at FROM conversations"
        " WHERE turn_run IS NULL AND status <> 'archived'"
    ):
        if busy.get(user, 0) < CAP and _has_work(world, which, status, next_run_at, now):
            found.add(which)
    return found


def whose_turn(world: World, *, passed_over: Collection[str] = ()) -> str | None:
    """Find the user with background work to claim who was served least recently."""
    can_be_claimed = claimable_work(world)
    for user, which in world.rows(
        "SELECT u.id, c.id FROM users u JOIN conversations c ON c.user_id = u.id"
        " WHERE NOT u.paused ORDER BY u.served_at, u.id"
    ):
        if which in can_be_claimed and user not in passed_over:
            return str(user)
    return None


def _has_work(world: World, which: str, status: str, next_run_at: int | None, now: int) -> bool:
    items = world.rows(
        "SELECT run_kind, from_person, at_once FROM inbox"
        " WHERE conversation_id = ? AND served_at IS NULL",
        which,
    )
    if any(from_person for _, from_person, _ in items):
        return False
    queued = dict(
        world.rows(
            "SELECT kind, wait_until FROM runs WHERE conversation_id = ? AND status = 'queued'",
            which,
        )
    )
    for kind, wait_until in queued.items():
        is_over = wait_until is not None and wait_until <= now
        if is_over and (kind == RunKind.REPLY.value or status != "waiting_input"):
            return True
    if "reply" not in queued and any(kind == "reply" for kind, _, _ in items):
        return True
    if "background" in queued:
        return False
    due = status == "background" and next_run_at is not None and next_run_at <= now
    wanted = any(
        kind == "background" and (status == "background" or (status == "active" and at_once))
        for kind, _, at_once in items
    )
    return due or wanted


def check_settled(world: World) -> None:
    """See that nothing was left behind once everybody had time to finish."""
    check(world)
    unserved = world.rows(
        "SELECT i.kind, c.status FROM inbox i JOIN conversations c ON c.id = i.conversation_id"
        " WHERE i.served_at IS NULL"
    )
    require(not unserved, f"items were never served: {unserved}")
    unfinished = world.rows("SELECT status FROM runs WHERE status IN ('running', 'queued')")
    require(not unfinished, f"runs never ended: {unfinished}")
    unsent = world.rows("SELECT key, state FROM deliveries WHERE state <> 'sent'")
    require(not unsent, f"parts were never sent: {unsent}")
    keys = {key for (key,) in world.rows("SELECT key FROM deliveries")}
    require(keys == set(world.sent), "what was sent is not what was to be sent")
    asked = world.rows(
        "SELECT q.id FROM questions q WHERE NOT EXISTS"
        " (SELECT 1 FROM notices n WHERE n.question_id = q.id)"
    )
    require(not asked, "a question reached nobody")
    for which, since in world.undisturbed.items():
        _check_slots(world, which, since)


def _check_slots(world: World, which: str, since: datetime) -> None:
    ((schedule,),) = world.rows("SELECT schedule FROM conversations WHERE id = ?", which)
    if schedule is None:
        return
    accounted = [
        EPOCH + timedelta(microseconds=slot)
        for (slot,) in world.rows(
            "SELECT slot_at FROM runs WHERE conversation_id = ? AND slot_at IS NOT NULL", which
        )
    ]
    timed = from_json(json.loads(schedule))
    for count, first in world.rows(
        "SELECT gap_count, gap_first_at FROM runs WHERE conversation_id = ? AND status = 'skipped'",
        which,
    ):
        passed = slots(timed, after=EPOCH + timedelta(microseconds=first - 1))
        accounted += [next(passed) for _ in range(count)]
    due = slots(timed, after=since - timedelta.resolution)
    expected = [next(due) for _ in accounted]
    require(sorted(accounted) == expected, f"slots of {which} are lost or stand twice")
