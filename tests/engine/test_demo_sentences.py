"""Sentences as the demo understands them."""

import pytest
from support.stage.make import NOON

from backburner.core.schedule.phrases import parse_schedule
from backburner.engine.demo.sentences import (
    AskWhether,
    Order,
    PickName,
    Remind,
    Stop,
    Talk,
    TellTime,
    WatchFile,
    Work,
    read,
    read_limit,
    read_work,
    split,
)

STRETCH = Remind("Time to stretch.")
NOTES = WatchFile("notes.txt")
GO_ON = AskWhether("Shall I go on?")
CAT = PickName("your new cat")


@pytest.mark.parametrize(
    ("sentence", "when", "work"),
    [
        ("remind me in 20 seconds to stretch", "in 20 seconds", STRETCH),
        ("Remind me to stretch in 20 seconds.", "in 20 seconds", STRETCH),
        ("In 20 seconds, remind me to stretch!", "in 20 seconds", STRETCH),
        ("PLEASE remind me to stretch  in 20s", "in 20s", STRETCH),
        ("Could you please remind me in twenty seconds to stretch?", "in 20 seconds", STRETCH),
        ("remind me in half an hour to stretch, please", "in 30 minutes", STRETCH),
        ("remind me in a minute to stretch", "in a minute", STRETCH),
        ("remind me in 1 hour and 5 minutes to stretch", "in 1 hour and 5 minutes", STRETCH),
        ("remind me to stretch tomorrow at 17:00", "tomorrow at 17:00", STRETCH),
        ("remind me at 9 tomorrow to stretch", "tomorrow at 9", STRETCH),
        ("remind me every weekday at 9 to stretch", "every weekday at 9", STRETCH),
        ("remind me every day at 9 a.m. to stretch", "every day at 9 a.m.", STRETCH),
        ("remind me each hour to stretch", "every hour", STRETCH),
        ("remind me monday to friday at 9 to stretch", "monday to friday at 9", STRETCH),
        ("remind me now to stretch", "now", STRETCH),
        (
            "remind me to be there at 5 in 2 minutes",
            "in 2 minutes",
            Remind("Time to be there at 5."),
        ),
        (
            "remind me in 2 minutes to be there at 5",
            "in 2 minutes",
            Remind("Time to be there at 5."),
        ),
        (
            "remind me in 3 minutes that my tea is ready",
            "in 3 minutes",
            Remind("Your tea is ready."),
        ),
        (
            "remind me in 3 minutes about the oven",
            "in 3 minutes",
            Remind("This is your reminder about the oven."),
        ),
        (
            "remind me in 1m to call my mother",
            "in 1m",
            Remind("Time to call your mother."),
        ),
        (
            "every 10 seconds check the file notes.txt and tell me when it changes",
            "every 10 seconds",
            NOTES,
        ),
        ("Every 10 secs, check notes.txt, and tell me if it changes!", "every 10 secs", NOTES),
        (
            "check notes.txt every 10 seconds and let me know when it changes",
            "every 10 seconds",
            NOTES,
        ),
        ("watch notes.txt", "every 10 seconds", NOTES),
        ("tell me when the file notes.txt changes", "every 10 seconds", NOTES),
        ("every minute look at my file notes", "every minute", WatchFile("notes")),
        ('watch "my notes.txt" every hour', "every hour", WatchFile("my notes.txt")),
        ("every 3 seconds ask me whether to go on", "every 3 seconds", GO_ON),
        ("Ask me every three seconds if you should go on.", "every 3 seconds", GO_ON),
        ("ask me whether to go on in 5 minutes", "in 5 minutes", GO_ON),
        ("Every minute, tell me the time.", "every minute", TellTime()),
        ("tell me what time it is every hour", "every hour", TellTime()),
        ("Pick a name for my new cat, but ask me first.", "now", CAT),
        ("choose a name for my new cat and ask me first", "now", CAT),
    ],
)
def test_a_request_is_understood_and_so_is_its_prompt(sentence: str, when: str, work: Work) -> None:
    meaning = read(sentence)

    assert isinstance(meaning, Order)
    assert meaning.when == when
    assert read_work(meaning.prompt) == work
    parse_schedule(meaning.when, zone="UTC", now=NOON)


@pytest.mark.parametrize(
    ("sentence", "limit"),
    [
        ("Every minute, tell me the time. Stop after three times.", 3),
        ("every minute tell me the time, and stop after 12 times", 12),
        ("tell me the time every minute, then stop after one time", 1),
        ("tell me the time every minute", None),
        ("tell me the time every minute, stop after a few times", None),
    ],
)
def test_a_request_may_say_how_often(sentence: str, limit: int | None) -> None:
    (whole,) = split(sentence)
    meaning = read(whole)

    if sentence.endswith("few times"):
        assert meaning is None
        return
    assert isinstance(meaning, Order)
    assert meaning.when == "every minute"
    assert read_work(meaning.prompt) == TellTime()
    assert read_limit(meaning.prompt) == limit


@pytest.mark.parametrize(
    ("prompt", "work"),
    [
        ("remind me in 20 seconds to stretch", STRETCH),
        ("Every 10 seconds check the file notes.txt and tell me when it changes.", NOTES),
        ("ask me every 3 seconds whether to go on", GO_ON),
    ],
)
def test_a_prompt_is_understood_with_its_time_in_it(prompt: str, work: Work) -> None:
    assert read_work(prompt) == work


@pytest.mark.parametrize(
    ("sentence", "when"),
    [
        ("remind me in 20 parsecs to stretch", "in 20 parsecs"),
        ("every now and then, remind me to stretch", "every now and then"),
        ("remind me tonight to stretch", "tonight"),
        ("remind me to stretch", ""),
    ],
)
def test_an_invalid_time_is_passed_on_as_written(sentence: str, when: str) -> None:
    assert read(sentence) == Order("Remind me to stretch.", when)


@pytest.mark.parametrize(
    ("sentence", "meaning"),
    [
        ("what are you working on?", Talk.LIST),
        ("What\u2019s going on here?", Talk.LIST),
        ("List my tasks", Talk.LIST),
        ("help", Talk.HELP),
        ("What can you do?", Talk.HELP),
        ("???", Talk.HELP),
        ("Hello!", Talk.HELLO),
        ("Good morning.", Talk.HELLO),
        ("thanks", Talk.THANKS),
        ("Thank you very much!", Talk.THANKS),
        ("Yes.", Talk.ANSWER),
        ("stop", Stop()),
        ("Stop it!", Stop()),
        ("please cancel that", Stop()),
        ("stop everything", Stop("everything")),
        ("stop notes.txt", Stop("notes.txt")),
        ("stop reminding me to stretch", Stop("stretch")),
        ("stop watching the file notes.txt", Stop("file notes.txt")),
        ("stop reminding me", Stop("remind")),
        ("stop asking", Stop("ask me")),
    ],
)
def test_a_sentence_without_work_is_understood(sentence: str, meaning: object) -> None:
    assert read(sentence) == meaning


@pytest.mark.parametrize(
    "sentence",
    [
        "WatchFile CI on main and tell me if it breaks.",
        "check my email every 10 minutes",
        "watch ''",
        "every 10 seconds",
        "What is the capital of France?",
        "remind me",
        "x" * 10_000,
        "remind me in 5 minutes to " + "stretch " * 100,
        "",
        "🙂",
    ],
)
def test_an_unknown_sentence_is_not_understood(sentence: str) -> None:
    assert not isinstance(read(sentence), Order | Stop)
    assert read_work(sentence) is None


def test_a_message_is_split_into_sentences() -> None:
    assert split("Hello! WatchFile notes.txt. Remind me at 9 a.m. to stretch\n\nThanks.") == [
        "Hello",
        "WatchFile notes.txt",
        "Remind me at 9 a.m. to stretch",
        "Thanks.",
    ]
    assert split("remind me in 1m to stretch and remind me in 2m to drink") == [
        "remind me in 1m to stretch",
        "remind me in 2m to drink",
    ]
    assert split("check notes.txt and tell me") == ["check notes.txt and tell me"]
    long = "Hello. " * 1_000
    assert split(long) == (long,)
