"""The sentences that the demo understands.

The same words serve twice: with a time, as a wish in a chat; without it, as the brief of the work.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from backburner.engine.demo import times

#: Nobody says more than this to a demo, and expressions are slow on long texts.
LONGEST_MESSAGE, LONGEST_SENTENCE = 4_000, 500
#: Where a file is to be watched and nobody says how often.
USUAL_WATCH = "every 10 seconds"


@dataclass(frozen=True, slots=True)
class Remind:
    #: What is said when the time has come.
    saying: str


@dataclass(frozen=True, slots=True)
class Watch:
    path: str


@dataclass(frozen=True, slots=True)
class AskWhether:
    question: str


Work = Remind | Watch | AskWhether


@dataclass(frozen=True, slots=True)
class Order:
    """Work, as a brief that can be read again, and its time; empty: nobody said one."""

    what: str
    when: str


@dataclass(frozen=True, slots=True)
class Stop:
    which: str = ""


class Talk(Enum):
    """What needs no more than an answer."""

    LOOK = "look"
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
_END = re.compile(r"(?<![ap]\.m)[.!?;]+\s+|\s*\n\s*")
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
}
_TALK = {
    Talk.LOOK: r"(?:what(?:'re| are) you (?:working on|doing|up to)"
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
    r"(?:stop|cancel|end|quit)(?: (?P<ing>reminding|watching|checking|asking))?(?: (?P<which>.+))?",
    re.IGNORECASE,
)
_BARE = {"reminding": "remind", "watching": "file", "checking": "file", "asking": "ask me"}
_TO_YOU = {
    "my": "your",
    "mine": "yours",
    "me": "you",
    "myself": "yourself",
    "i": "you",
    "i'm": "you're",
    "am": "are",
}


def split(text: str) -> Sequence[str]:
    """Take a message apart into sentences."""
    if len(text) > LONGEST_MESSAGE:
        return (text,)
    return [part for line in _END.split(text) for part in _ALSO.split(line) if part.strip()]


def read(sentence: str) -> Meaning | None:
    """Find out what is meant; None: that is not among what the demo understands."""
    words = _tidy(sentence)
    if len(words) > LONGEST_SENTENCE:
        return None
    for talk, pattern in _TALK.items():
        if re.fullmatch(pattern, words, re.IGNORECASE):
            return talk
    if found := _STOP.fullmatch(words):
        return Stop(_stopped(found))
    when, rest = times.take_out(words)
    brief = _brief(rest)
    if brief is None:
        return None
    is_watch = isinstance(read_work(brief), Watch)
    return Order(brief, when or (USUAL_WATCH if is_watch else ""))


def read_work(brief: str) -> Work | None:
    """Find out what is to be done when the time has come."""
    words = _tidy(brief)
    if len(words) > LONGEST_SENTENCE:
        return None
    kind, found = _find(words)
    if found is None:
        kind, found = _find(times.take_out(words)[1])
    if found is None:
        return None
    match kind:
        case "remind":
            return Remind(_saying(found["how"].lower(), found["about"]))
        case "ask":
            return AskWhether(f"Shall I {found['do']}?")
        case _:
            path = _path(found)
            return None if path is None else Watch(path)


def _tidy(text: str) -> str:
    words = " ".join(text.replace("\u2019", "'").split()).strip(" .!?;,")
    return _PLEASE.sub("", words).strip(" ,")


def _find(rest: str) -> tuple[str, re.Match[str] | None]:
    for kind, pattern in _WORKS.items():
        if found := re.fullmatch(pattern, rest, re.IGNORECASE):
            return kind, found
    return "", None


def _brief(rest: str) -> str | None:
    """Put work into the words that everybody who does it gets."""
    kind, found = _find(rest)
    if found is None:
        return None
    match kind:
        case "remind":
            return f"Remind me {found['how'].lower()} {found['about']}."
        case "ask":
            return f"Ask me whether to {found['do']}."
        case _:
            path = _path(found)
            if path is None:
                return None
            quoted = f'"{path}"' if " " in path else path
            return f"Check the file {quoted} and tell me when it changes."


def _path(found: re.Match[str]) -> str | None:
    """Take the name of a file; a bare word is one only where it is called a file."""
    said = found["path"]
    path = said.strip("\"'“”`")
    is_file = bool(found["file"]) or path != said or "." in path or "/" in path
    return path if is_file and path.strip() else None


def _saying(how: str, about: str) -> str:
    yours = " ".join(_TO_YOU.get(word.lower(), word) for word in about.split())
    match how:
        case "to":
            return f"Time to {yours}."
        case "that":
            return f"{yours[:1].upper()}{yours[1:]}."
        case _:
            return f"This is your reminder about {yours}."


def _stopped(found: re.Match[str]) -> str:
    which = re.sub(r"^(?:the|my|that|all the)\b ?", "", found["which"] or "", flags=re.IGNORECASE)
    if found["ing"]:
        which = re.sub(r"^(?:me\b)?(?: ?(?:to|whether|about|of)\b)? ?", "", which)
        return which or _BARE[found["ing"].lower()]
    return "" if which.lower() in ("", "it", "work", "working", "task") else which
