"""The sentences that the demo understands.

The same patterns serve twice: with a time for a request in a chat, without it for the prompt of
the work.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from backburner.engine.demo import times

#: Regular expressions are slow on long texts.
MAX_MESSAGE_CHARS, MAX_SENTENCE_CHARS = 4_000, 500
#: If the user names no time: for a file to be watched, and for a name to be picked.
DEFAULT_WATCH_SCHEDULE, DEFAULT_PICK_SCHEDULE = "every 10 seconds", "now"


@dataclass(frozen=True, slots=True)
class Remind:
    text: str


@dataclass(frozen=True, slots=True)
class WatchFile:
    path: str


@dataclass(frozen=True, slots=True)
class AskWhether:
    question: str


@dataclass(frozen=True, slots=True)
class TellTime:
    pass


@dataclass(frozen=True, slots=True)
class PickName:
    #: As in "your new cat".
    named: str


Work = Remind | WatchFile | AskWhether | TellTime | PickName


@dataclass(frozen=True, slots=True)
class Order:
    """A request for work: a prompt that `read_work` understands, and its time, if any."""

    prompt: str
    when: str


@dataclass(frozen=True, slots=True)
class Stop:
    work: str = ""


class Talk(Enum):
    """Sentences that only need an answer."""

    LIST = "list"
    HELP = "help"
    HELLO = "hello"
    THANKS = "thanks"
    ANSWER = "answer"


Meaning = Order | Stop | Talk

_PLEASE = re.compile(
    r"^(?:(?:please|hey|hi|hello|ok|okay|so|and|then|also|now)[,!]? +)*"
    r"(?:(?:could|can|would|will) you +)?(?:please +)?(?=\S)|,? +please$",
    re.IGNORECASE,
)
_STOP_AFTER = r"(?:and |then |but )*(?:stop|end)(?: it| that)? after "
_COUNTED = r"(?P<times>\w+) (?:times?|runs?)"
_END = re.compile(rf"(?<![ap]\.m)[.!?;]+\s+(?!{_STOP_AFTER})|\s*\n\s*", re.IGNORECASE)
_LIMIT = re.compile(rf"[.,;!]* +{_STOP_AFTER}{_COUNTED}$", re.IGNORECASE)
_ALSO = re.compile(
    r",? +(?:and|then)(?: then| also)? +(?=(?:remind|ask) me\b|every \S+ \S+ (?:check|watch)\b)",
    re.IGNORECASE,
)
_FILE = r"(?P<path>\"[^\"]+\"|'[^']+'|“[^”]+”|`[^`]+`|\S+?)"
_TELL = r"(?:tell|let|notify|alert) me(?: know)?"
_WORKS = {
    "remind": r"(?:remind|tell|nudge) me (?P<how>to|that|about|of) (?P<about>.+)",
    "watch": r"(?:check|watch|monitor|look at|keep an eye on)(?: (?:the|my|a))?(?P<file> file)? "
    rf"{_FILE}(?: for changes)?(?:,? (?:and )?{_TELL}(?: .*)?)?",
    "change": rf"{_TELL} (?:when|whenever|if)(?: (?:the|my|a))?(?P<file> file)? {_FILE} "
    r"(?:changes|is changed|was changed|has changed)",
    "ask": r"ask me (?:whether|if) (?:to|you should|you may|you can) (?P<do>.+)",
    "time": r"tell me (?:the time|what time it is|how late it is)",
    "pick": r"(?:pick|choose|find|suggest) an? name for (?P<named>.+?),?"
    r" (?:but |and )?ask me (?:first|before)",
}
_TALK = {
    Talk.LIST: r"(?:what(?:'re| are) you (?:working on|doing|up to)"
    r"|what(?:'s| is) (?:going on|running)|list|status|tasks"
    r"|(?:list|show me|show) (?:the |your |my )?(?:work|tasks|everything))"
    r"(?: now| here| right now| at the moment)?",
    Talk.HELP: r"help(?: me)?|what can (?:you|i) (?:do|say)|how does this work|\?*",
    Talk.HELLO: r"hello|hi|hey|hello there|hi there|good (?:morning|afternoon|evening|day)",
    Talk.THANKS: r"(?:many |ok(?:ay)? )?thanks?(?: you)?(?: very much| a lot)?|ok(?:ay)?|great|cool"
    r"|nice|well done|bye|good ?bye",
    Talk.ANSWER: r"yes|no|y|n",
}
_STOP = re.compile(
    r"(?:stop|cancel|end|quit)(?: (?P<ing>reminding|watching|checking|asking))?(?: (?P<work>.+))?",
    re.IGNORECASE,
)
_DEFAULT_STOPS = {"reminding": "remind", "watching": "file", "checking": "file", "asking": "ask me"}
_SECOND_PERSON = {
    "my": "your",
    "mine": "yours",
    "me": "you",
    "myself": "yourself",
    "i": "you",
    "i'm": "you're",
    "am": "are",
}


def split(text: str) -> Sequence[str]:
    """Split a message into sentences."""
    if len(text) > MAX_MESSAGE_CHARS:
        return (text,)
    return [part for line in _END.split(text) for part in _ALSO.split(line) if part.strip()]


def read(sentence: str) -> Meaning | None:
    """Return the meaning of a sentence, or None if the demo does not understand it."""
    words = _tidy(sentence)
    if len(words) > MAX_SENTENCE_CHARS:
        return None
    for talk, pattern in _TALK.items():
        if re.fullmatch(pattern, words, re.IGNORECASE):
            return talk
    if matched := _STOP.fullmatch(words):
        return Stop(_work_to_stop(matched))
    words, limit = _split_limit(words)
    when, rest = times.split_time(words)
    prompt = _prompt(rest)
    if prompt is None:
        return None
    match read_work(prompt):
        case WatchFile():
            when = when or DEFAULT_WATCH_SCHEDULE
        case PickName():
            when = when or DEFAULT_PICK_SCHEDULE
    if limit is not None:
        prompt = f"{prompt} Stop after {limit} times."
    return Order(prompt, when)


def read_limit(prompt: str) -> int | None:
    """Return after how many times the work of a prompt ends, if it says so."""
    words = _tidy(prompt)
    return None if len(words) > MAX_SENTENCE_CHARS else _split_limit(words)[1]


def read_work(prompt: str) -> Work | None:
    """Return the work that a prompt describes, or None."""
    words = _tidy(prompt)
    if len(words) > MAX_SENTENCE_CHARS:
        return None
    words, _ = _split_limit(words)
    kind, matched = _find(words)
    if matched is None:
        kind, matched = _find(times.split_time(words)[1])
    if matched is None:
        return None
    match kind:
        case "remind":
            return Remind(_reminder_text(matched["how"].lower(), matched["about"]))
        case "ask":
            return AskWhether(f"Shall I {matched['do']}?")
        case "time":
            return TellTime()
        case "pick":
            return PickName(_reword(matched["named"]))
        case _:
            path = _path(matched)
            return None if path is None else WatchFile(path)


def _tidy(text: str) -> str:
    words = " ".join(text.replace("\u2019", "'").split()).strip(" .!?;,")
    return _PLEASE.sub("", words).strip(" ,")


def _find(rest: str) -> tuple[str, re.Match[str] | None]:
    for kind, pattern in _WORKS.items():
        if matched := re.fullmatch(pattern, rest, re.IGNORECASE):
            return kind, matched
    return "", None


def _prompt(rest: str) -> str | None:
    """Write the prompt of the work, in a form that `read_work` understands."""
    kind, matched = _find(rest)
    if matched is None:
        return None
    match kind:
        case "remind":
            return f"Remind me {matched['how'].lower()} {matched['about']}."
        case "ask":
            return f"Ask me whether to {matched['do']}."
        case "time":
            return "Tell me the time."
        case "pick":
            return f"Pick a name for {matched['named']}, but ask me first."
        case _:
            path = _path(matched)
            if path is None:
                return None
            quoted = f'"{path}"' if " " in path else path
            return f"Check the file {quoted} and tell me when it changes."


def _path(matched: re.Match[str]) -> str | None:
    """Return the name of a file; a bare word is one only if the sentence calls it a file."""
    named = matched["path"]
    path = named.strip("\"'“”`")
    is_file = bool(matched["file"]) or path != named or "." in path or "/" in path
    return path if is_file and path.strip() else None


def _reminder_text(how: str, about: str) -> str:
    reworded = _reword(about)
    match how:
        case "to":
            return f"Time to {reworded}."
        case "that":
            return f"{reworded[:1].upper()}{reworded[1:]}."
        case _:
            return f"This is your reminder about {reworded}."


def _reword(text: str) -> str:
    """Say of the user's things what they say of them: my cat, your cat."""
    return " ".join(_SECOND_PERSON.get(word.lower(), word) for word in text.split())


def _split_limit(words: str) -> tuple[str, int | None]:
    """Split off how often something happens at most."""
    matched = _LIMIT.search(words)
    limit = times.read_number(matched["times"]) if matched else None
    return (words, None) if matched is None or not limit else (words[: matched.start()], limit)


def _work_to_stop(matched: re.Match[str]) -> str:
    work = re.sub(r"^(?:the|my|that|all the)\b ?", "", matched["work"] or "", flags=re.IGNORECASE)
    if matched["ing"]:
        work = re.sub(r"^(?:me\b)?(?: ?(?:to|whether|about|of)\b)? ?", "", work)
        return work or _DEFAULT_STOPS[matched["ing"].lower()]
    return "" if work.lower() in ("", "it", "work", "working", "task") else work
