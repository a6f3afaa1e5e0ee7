"""What recurred in four weeks, and what was said meanwhile."""

from collections.abc import Sequence

from backburner.actions import conversations
from backburner.actions.conversations import Changes
from backburner.actions.origin import Origin
from backburner.actions.work import control, jobs
from backburner.actions.work.jobs import JobRequest
from backburner.core.conversation import OnRepeatedFailure
from backburner.core.errors import EngineFailed
from support.doubles.engine import Call, End, Fail, Say, Spend, Wait
from support.showcase import texts
from support.showcase.world import Act, Pass, Showcase, before_the_end

PUSH = (
    "git push origin fix/late-renewal && gh pr create --base main"
    ' --title "Compare one clock" --body-file \u200bpr.md'
)
NO_TABLE = Fail(EngineFailed("The archive has no table `orders`.", permanent=True))


@before_the_end(days=28)
async def set_up_what_recurs(world: Showcase) -> None:
    world.results["search_mail"] = (1.4, "27 mails since yesterday 18:00.")
    digest = await world.set_task(
        "digest",
        "Morning digest",
        "Read the mail of the night, file it, and say what needs me.",
        "weekdays at 7:30",
        description="Sums up the mail of the night.",
        connections=["mail"],
        on_repeated_failure=OnRepeatedFailure.NOTIFY,
    )
    await conversations.update(world.deps, world.me, digest, Changes(pinned=True))
    world.plays(digest, *[_sum_up(day) for day in range(22)])
    look = "See whether last night's backup can be restored."
    backup = await world.set_task("backup", "Backup check", look, "every day at 3:00")
    well = [(Pass(20 + day), Spend(900), End({"complete": True})) for day in range(26)]
    world.plays(backup, *well, *[(Pass(41), NO_TABLE)] * 9)
    reading = await world.set_task(
        "reading", "Weekly reading list", "Collect what I have marked to read.", "mondays at 9:00"
    )
    world.plays(reading, *[_complete(31, texts.READING.format(number=n)) for n in (9, 6, 11)])


def _sum_up(day: int) -> Sequence[Act]:
    if day == 7:
        return (Pass(12), Fail(EngineFailed("Mail did not answer for a minute.", permanent=True)))
    return (
        Call("search_mail", {"query": "in:inbox newer_than:1d", "limit": 50}),
        Pass(4 + day % 5),
        Spend(1_800 + 230 * (day % 6)),
        Call("read_mail", {"id": f"18c{day:02}f"}),
        Pass(9 + 3 * (day % 4)),
        Spend(2_100),
        End(
            {
                "complete": True,
                "message": texts.DIGESTS[day % 3],
                "state_update": {"Filed": 23, "Needs you": 4},
            }
        ),
    )


def _complete(seconds: float, message: str) -> Sequence[Act]:
    return (Pass(seconds), Spend(4_000), End({"complete": True, "message": message}))


@before_the_end(days=21)
async def ask_about_curtains(world: Showcase) -> None:
    reply = Say("Twice the width of the window.")
    curtains = await world.begin("archived", "Curtains", "How wide should they be?", reply)
    await conversations.archive(world.deps, world.me, curtains)


@before_the_end(days=5)
async def pause_the_reading_list(world: Showcase) -> None:
    await control.pause(world.deps, Origin.by_user(world.me), world.places["reading"])


@before_the_end(days=4, minutes=3)
async def ask_for_a_look_at_builds(world: Showcase) -> None:
    """Begin the main conversation: runs, a talk, and a request for permission."""
    world.results |= {
        "read_file": (0.3, texts.WORKFLOW),
        "list_runs": (0.8, "20 runs, the last one took 6 min 40 s."),
        "run_tests": (38.2, "50 passed in 37.9 s"),
    }
    builds = await world.begin(
        "builds",
        "Nightly build",
        "Look at the nightly build each weekday, and tell me what broke.",
        Spend(1_200),
        Say("I will look each weekday at 8:00, and write when there is something new."),
    )
    await world.schedule(builds, "weekdays at 8:00", "Look at the nightly build.")
    await conversations.update(world.deps, world.me, builds, Changes(pinned=True))
    steps = ("list_runs", "read_file", "run_tests", "fetch_url", "list_files")
    world.plays(
        builds,
        (
            *(Pass(65), Spend(2_800)),
            Fail(EngineFailed("The build server did not answer.", permanent=True)),
        ),
        (
            *(
                Call(tool, {"branch": "main", "number": number})
                for number, tool in enumerate(steps)
            ),
            Pass(61),
            Spend(3_900),
            End({"complete": True, "message": texts.GOOD_NIGHT, "state_update": texts.KNOWN}),
        ),
    )


@before_the_end(days=2, hours=2)
async def plan_a_trip(world: Showcase) -> None:
    trip = await world.begin(
        "trip", texts.TRIP_TITLE, texts.TRIP, Pass(4), Spend(1_500), Say(texts.TRIP_PLAN)
    )
    await world.look(trip)


@before_the_end(hours=1, minutes=2)
async def ask_about_kettles(world: Showcase) -> None:
    fetch = Call("fetch_url", {"url": "https://reviews.example/kettles"})
    kettle = await world.begin(
        "kettle",
        "A kettle for the office",
        "Which kettle under $60 should we buy?",
        *(fetch, Pass(8), Spend(2_600), Say(texts.KETTLE)),
    )
    await world.look(kettle)


@before_the_end(minutes=52)
async def change_a_letter(world: Showcase) -> None:
    reply = Say("Done: it asks first, and thanks at the end.")
    await world.begin("letter", "Letter to the landlord", "Make this friendlier.", Pass(5), reply)


@before_the_end(minutes=47)
async def hand_out_jobs(world: Showcase) -> None:
    """Let a conversation have jobs in all states."""
    hosting = await world.begin(
        "hosting",
        "Compare hosting offers",
        "Compare five hosting offers for the shop.",
        *(Pass(2), Spend(900), Say("I look at five at once, and sum up when all are in.")),
    )
    plan = {"type": "choice", "prompt": texts.PLANS, "options": ["the small one", "the large one"]}
    offers: dict[str, Sequence[Act]] = {
        "Northwind": _complete(41, "$31 a month, two regions."),
        "Palisade": _complete(73, "$28 a month, one region."),
        "Quarry": (Fail(EngineFailed("The price list needs a login.", permanent=True)),),
        "Tern": (End({"needs_input": True, "message": "Two plans fit.", "question": plan}),),
        "Skylark": (Call("fetch_url", {"url": "https://skylark.example/pricing"}), Wait()),
    }
    wishes = [
        JobRequest(description=f"Offer of {one}", prompt=f"Read it: {one}.") for one in offers
    ]
    started = await jobs.start(world.deps, Origin(world.me, hosting), wishes)
    for job, acts in zip(started, offers.values(), strict=True):
        world.plays(job.id, acts)
        world.places[job.description] = job.id


@before_the_end(minutes=31)
async def ask_why_builds_are_slow(world: Showcase) -> None:
    await world.tell(
        world.places["builds"],
        "Why does it take so much longer since Thursday?",
        Call("list_runs", {"branch": "main", "limit": 20}),
        Call("read_file", {"path": ".ci/nightly.yaml"}),
        *(Pass(6), Spend(5_200), Say(texts.SLOW_BUILDS)),
    )


@before_the_end(minutes=3)
async def let_builds_ask(world: Showcase) -> None:
    builds = world.places["builds"]
    tried = Call("run_tests", {"count": 50})
    world.plays(builds, (tried, Spend(4_400), Call("run_command", {"command": PUSH})))
    await control.run_now(world.deps, Origin.by_user(world.me), builds)


@before_the_end(minutes=2)
async def look_for_flats(world: Showcase) -> None:
    prompt = "Look for flats near the river, two rooms."
    flats = await world.set_task("flats", "Flats by the river", prompt, "every 2h")
    page = Call("fetch_url", {"url": "https://flats.example/river?page=2"})
    progress = Call("report_progress", {"text": "reads 3 new ads"})
    world.plays(flats, (progress, page, Wait()))
    await control.run_now(world.deps, Origin.by_user(world.me), flats)


@before_the_end(seconds=20)
async def write_a_reply(world: Showcase) -> None:
    """Let a reply be in the middle of a sentence."""
    talk = world.places["letter"]
    await world.tell(talk, "And shorter.", Pass(3), Say(texts.HALF_A_REPLY), Wait())
