"""Hostile text in every place where the page shows text of others, besides the stories of all."""

from support.doubles.engine import Call, End, Fail, Say
from support.doubles.tool_servers import tool
from support.showcase.world import Showcase, before_the_end
from web.markdown.corpus import HOSTILE

from backburner.actions import chat, conversations, memories
from backburner.actions.chat import UserMessage
from backburner.actions.conversations import Changes
from backburner.actions.origin import Origin
from backburner.actions.work import control, files
from backburner.core.content.attachment import Attachment
from backburner.core.content.file import DEFAULT_LIMITS
from backburner.core.errors import EngineFailed
from backburner.core.validation import replace_invalid_characters

TEMPLATE = (
    "{{ 1337*31 }} {% include '/etc/passwd' %} ${1337*31} {title} {0.__class__} %(x)s"
    " <%= 1337*31 %>"
)
BREAKOUT = "\"'><script>pwned.push(1)</script><img src=//evil.example/x onerror=pwned.push(2)>"
HUGE = "W" * 5_000
TEXTS = [replace_invalid_characters(text) for text in (TEMPLATE, BREAKOUT, HUGE, *HOSTILE.values())]
#: By name.
ATTACHED = {
    "evil.svg": b'<svg xmlns="http://www.w3.org/2000/svg" onload="pwned.push(3)"><script>'
    b'pwned.push(4)</script><image href="//evil.example/x.png"/></svg>',
    "evil.html": b"<!doctype html><script>pwned.push(5)</script><img src=//evil.example/y>",
    "gif.js.png": b"GIF89a/*\x01\x00*/=1;pwned.push(6);//<script>pwned.push(7)</script>",
    "pdf.html": b"%PDF-1.7\n<script>pwned.push(8)</script>\n%%EOF",
    BREAKOUT: b"plain",
    "\u202egnp.exe" + "x" * 120: b"plain too",
}
TOOLS = ("<img src=x onerror=alert(1)>", "{{ 7*7 }}", "a\u202eb", "x" * 120)


@before_the_end(seconds=18)
async def say_hostile_things(world: Showcase) -> None:
    made = await world.begin("hostile", "Hostile", TEXTS[0], Say("\n\n".join(TEXTS)))
    for text in TEXTS:
        await chat.send(world.deps, world.me, made, text)
    world.plays(made, (Say("Heard."),))
    await world.work()
    uploads = [
        await files.upload(world.deps, world.me, data, name=name, limits=DEFAULT_LIMITS)
        for name, data in ATTACHED.items()
    ]
    named = [Attachment(one.digest, name) for one, name in zip(uploads, ATTACHED, strict=True)]
    await chat.send(world.deps, world.me, made, UserMessage(BREAKOUT, named))
    world.plays(made, (Say(BREAKOUT),))
    await world.work()


@before_the_end(seconds=15)
async def do_hostile_things(world: Showcase) -> None:
    """Call tools whose names, arguments and results attack, and fail with such words."""
    made = world.servers.add(
        world, "evil", [tool(name) for name in TOOLS], user=world.me, title=BREAKOUT
    )
    world.connections["evil"] = made.id
    world.results |= {name: (0.1, "\n".join(TEXTS)) for name in ("fetch_url", "read_file")}
    calls = [
        Call(one, {"url": text, text[:80]: TEMPLATE})
        for text in TEXTS[:20]
        for one in ("fetch_url", "read_file")
    ]
    state = {text[:60]: text[:500] for text in TEXTS[:12]}
    task = await world.set_task("hostile_task", BREAKOUT, "\n".join(TEXTS), "every 3h")
    broken = Fail(EngineFailed(BREAKOUT + TEMPLATE, permanent=True))
    done = End({"complete": True, "message": "\n\n".join(TEXTS), "state_update": state})
    world.plays(task, (*calls, done), (broken,))
    for _ in range(2):
        await control.run_now(world.deps, Origin.by_user(world.me), task)
        await world.work()


@before_the_end(seconds=12)
async def ask_hostile_things(world: Showcase) -> None:
    options = [text.strip()[:200] or "x" for text in TEXTS[:3]] + ["{title}", "<b>yes</b>"]
    for kind, more in (("choice", {"options": options}), ("input", {}), ("confirmation", {})):
        task = await world.set_task(f"hostile_{kind}", f"{kind} {TEMPLATE}", "Ask.")
        prompt = f"{BREAKOUT} {TEMPLATE}\n" + "\n".join(TEXTS[3:12])
        asked = {"type": kind, "prompt": prompt[:7_000], **more}
        world.plays(task, (End({"needs_input": True, "message": BREAKOUT, "question": asked}),))
    task = await world.set_task("hostile_approval", "Approve \u202ethis", "Do it.")
    command = Call(
        "run_command", {"command": f"rm -rf '{BREAKOUT}' \u202e\u2066 {TEMPLATE} {HUGE}"}
    )
    world.plays(task, (command,))


@before_the_end(seconds=9)
async def give_everything_a_hostile_name(world: Showcase) -> None:
    for number, place in enumerate(list(world.places.values())):
        title = (TEXTS[number % len(TEXTS)].strip() or BREAKOUT)[:200]
        await conversations.update(world.deps, world.me, place, Changes(title=title))
    for number, text in enumerate(TEXTS):
        await memories.remember(world.deps, world.me, f"{number} {BREAKOUT}"[:100], text[:1_000])
