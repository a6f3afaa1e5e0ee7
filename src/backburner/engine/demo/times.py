"""When something is to be done, as people say it: found in a sentence, and put plainly."""

import re

_NUMBERS = {
    name: str(number)
    for number, name in enumerate(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
        " sixteen seventeen eighteen nineteen twenty".split(),
        start=1,
    )
} | {"thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "ninety": "90"}
_COUNT = rf"(?:\d+(?:\.\d+)?|{'|'.join(_NUMBERS)})"
_UNIT = r"(?:s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)"
_SPAN = rf"(?:{_COUNT} ?{_UNIT}(?:,? (?:and )?{_COUNT} ?{_UNIT})*)"
_CLOCK = r"(?:\d\d?(?::\d\d)?(?: ?[ap]\.?m\b\.?)?|noon|midnight)"
_DAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?s?"
_DAYS = rf"(?:{_DAY}(?:(?:,? and |, ?| to | through |-){_DAY})*|weekday|day|weekdays|weekends)"
#: What is surely a time.
_TIME = (
    r"(?:right now|now|at once|immediately|right away|hourly"
    rf"|in (?:{_SPAN}|half an hour|an? (?:second|minute|hour|day|week))"
    rf"|(?:every|each) (?:{_SPAN}|second|minute|hour|half hour|half an hour)"
    rf"|(?:(?:every |each |on )?{_DAYS}|daily) (?:at )?{_CLOCK}"
    rf"|(?:today|tomorrow|the day after tomorrow) at {_CLOCK}"
    rf"|at {_CLOCK}(?: (?:today|tomorrow))?"
    rf"|(?:on )?\d{{4}}-\d\d-\d\d(?:t| at )\S+)"
)
#: What looks as if it were meant as one: whoever reads it properly says what is wrong with it.
_GUESS = r"(?:(?:in|every|each|at|on|next|this|tonight|tomorrow|today)\b.*?)"
_VERB = r"(?:(?:remind|tell|nudge|ask|let|notify|alert) me|check|watch|monitor|look at|keep an eye)"
_AFTER = r"(?:,? (?:and )?(?:tell|let|notify|alert) me\b.*)?"
_ABOUT = r"(?:(?:to|that)(?! (?:mon|tue|wed|thu|fri|sat|sun))|about|of|whether|if)\b.*"
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"(?P<when>{_TIME}),? (?P<rest>{_VERB}\b.*)",
        rf"(?P<verb>(?:remind|tell|nudge|ask) me) (?P<when>{_TIME}) (?P<rest>{_ABOUT})",
        rf"(?P<rest>{_VERB}\b.*?),? (?P<when>{_TIME})(?P<after>{_AFTER})",
        rf"(?P<when>{_GUESS}),? (?P<rest>{_VERB}\b.*)",
        rf"(?P<verb>(?:remind|tell|nudge|ask) me) (?P<when>{_GUESS}) (?P<rest>{_ABOUT})",
    )
)
_PLAIN = {
    r"\beach\b": "every",
    r"\bright (?:now|away)\b": "now",
    r"\bhalf an hour\b|\bhalf hour\b": "30 minutes",
    r"\b(at .+) (today|tomorrow)$": r"\2 \1",
    r"\b(?:on )(?=weekdays|weekends)": "",
    **{rf"\b{name}\b": number for name, number in _NUMBERS.items()},
}


def take_out(words: str) -> tuple[str, str]:
    """Find a time at the beginning, after the verb or at the end: it, and what is left."""
    for form in _FORMS:
        if found := form.fullmatch(words):
            parts = found.groupdict(default="")
            left = f"{parts.get('verb', '')} {parts['rest']}{parts.get('after', '')}"
            return _plainly(parts["when"]), left.strip()
    return "", words


def _plainly(when: str) -> str:
    plain = when.lower().strip(" ,")
    for pattern, becomes in _PLAIN.items():
        plain = re.sub(pattern, becomes, plain)
    return plain
