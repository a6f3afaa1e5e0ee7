"""Questions of every purpose, each asked by the work that it stops."""

from collections.abc import Mapping
from typing import Any

from backburner.actions.accounts import profile
from backburner.core.connections.inputs.input_request import (
    InputField,
    InputKind,
    InputNeeded,
    InputOption,
    InputRequest,
)
from backburner.core.errors import SignedOut
from backburner.core.question import YES
from backburner.core.tool_policy import ALWAYS_HERE
from backburner.ports import ToolResult
from support.doubles.engine import Call, End, Spend
from support.people.callers import local_caller
from support.showcase import texts
from support.showcase.world import Pass, Showcase, before_the_end


@before_the_end(minutes=44)
async def ask_whether_a_newsletter_went_out(world: Showcase) -> None:
    about = {"list": "readers", "subject": "November at the workshop", "count": 1843}
    send = Call("send_campaign", about)
    title = "Newsletter of November"
    task = await world.set_task("in_doubt", title, "Send it to all.", connections=["news"])
    world.plays(task, (send,), (send,))
    await world.work()
    await world.answer(world.by_id(task), ALWAYS_HERE)

    def break_down(_name: str, _arguments: Mapping[str, Any]) -> ToolResult:
        raise KeyError("unexpected")

    world.servers["news"].handler = break_down


@before_the_end(minutes=40)
async def ask_for_a_lasting_yes(world: Showcase) -> None:
    title, prompt = "Thank the helpers", "Write to all who helped at the fair."
    task = await world.set_task("lasting", title, prompt, connections=["mail"])
    text = "Thank you for your help on Saturday. The stand was full until the evening."
    world.plays(task, (Call("send_mail", {"to": "helpers@fair.example", "text": text}),))


@before_the_end(minutes=38)
async def ask_to_reconnect(world: Showcase) -> None:
    title, prompt = "Tidy up the calendar", "Find double bookings."
    task = await world.set_task("reconnect", title, prompt, connections=["calendar"])

    def refuse(_name: str, _arguments: Mapping[str, Any]) -> ToolResult:
        raise SignedOut("Calendar does not accept the sign-in any more.")

    world.servers["calendar"].handler = refuse
    world.plays(task, (Call("list_events", {"week": 47}),))


@before_the_end(minutes=33)
async def ask_for_an_address(world: Showcase) -> None:
    """Let a server ask, in a call that was allowed."""
    title, prompt = "Order toner", "Order two of what is in the printer."
    task = await world.set_task("elicitation", title, prompt, connections=["shop"])
    order = Call("place_order", {"article": "TN-2420", "count": 2})
    world.plays(task, (order,), (order,))
    await world.work()
    await world.answer(world.by_id(task), YES)
    street = InputField(name="street", title="Street and number", required=True)
    floor = InputField(name="floor", title="Floor", kind=InputKind.INTEGER, default=2)
    gate = InputField(
        name="gate", title="May it be left at the gate?", kind=InputKind.SWITCH, required=True
    )
    slots = (InputOption("am", "Before noon"), InputOption("pm", "After noon"))
    slot = InputField(
        name="slot",
        title="When",
        description="Somebody has to be there to sign for it.",
        kind=InputKind.CHOICE,
        options=slots,
        default="pm",
    )
    extras = (InputOption("box", "Take the empty ones back"), InputOption("sms", "Send a message"))
    more = InputField(name="more", title="And", kind=InputKind.CHOICES, options=extras)
    wanted = InputRequest(
        key="to", message="Where shall it go?", fields=(street, floor, gate, slot, more)
    )

    def ask(_name: str, _arguments: Mapping[str, Any]) -> InputNeeded:
        return InputNeeded(requests=(wanted,), state="order-1")

    world.servers["shop"].handler = ask


@before_the_end(minutes=29)
async def spend_an_allowance(world: Showcase) -> None:
    title, prompt = "Translate the handbook", "Translate all 62 pages."
    task = await world.set_task("allowance", title, prompt)
    caller = local_caller(world.me)
    await profile.set_conversation_allowance(world.deps, caller, task, "2.00 USD")
    world.plays(task, (Pass(95), Spend(80_000), Spend(60_000), Pass(4)))


@before_the_end(minutes=24)
async def propose_a_task(world: Showcase) -> None:
    task = {
        "name": "Water the office plants",
        "prompt": "Remind whoever is in the office to water the plants.",
        "when": "mondays and thursdays at 10:00",
        "why": "You asked about the dry fern twice this month.",
    }
    propose = Call("task_propose", task)
    title, text = "The fern by the window", "The fern looks dry again."
    await world.begin("proposal", title, text, propose, Spend(900))


@before_the_end(minutes=19)
async def ask_for_a_yes(world: Showcase) -> None:
    prompt = "The vet has a free slot on Friday at 9:20. Shall I take it?"
    await _ask(world, "confirmation", "Vet for Biscuit", "confirmation", prompt)


@before_the_end(minutes=16)
async def ask_for_words(world: Showcase) -> None:
    prompt = "Which car goes on the ferry, and what is its number plate?"
    await _ask(world, "input", "Book the ferry", "input", prompt)


@before_the_end(minutes=11)
async def ask_to_choose(world: Showcase) -> None:
    options = ["file it", "pay it as it is", "ask them for a new one"]
    title = "Invoice of Bright Paper"
    await _ask(world, "choice", title, "choice", texts.INVOICE, options=options)


async def _ask(world: Showcase, name: str, title: str, kind: str, prompt: str, **more: Any) -> None:
    task = await world.set_task(name, title, "Do what is needed.")
    question = {"type": kind, "prompt": prompt, **more}
    outcome = {"needs_input": True, "message": prompt, "question": question}
    world.plays(task, (Pass(14), Spend(1_300), End(outcome)))
