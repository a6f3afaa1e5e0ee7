"""Times in sentences: find one, and write it in the form that schedules are parsed from."""

import re

from backburner.core.schedule import phrases

_NUMBERS = {
    name: str(number)
    for number, name in enumerate(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
        " sixteen seventeen eighteen nineteen twenty".split(),
        start=1,
    )
} | {"thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "ninety": "90"}
_COUNT = rf"(?:\d+(?:\.\d+)?|{'|'.join(_NUMBERS)})"
_UNIT = f"(?:{'|'.join(f'{short}|{unit}?' for unit, short in phrases.UNITS.items())})"
_SPAN = rf"(?:{_COUNT} ?{_UNIT}(?:,? (?:and )?{_COUNT} ?{_UNIT})*)"
_CLOCK = rf"(?:\d\d?(?::\d\d)?(?: ?[ap]\.?m\b\.?)?|{'|'.join(phrases.NAMED_TIMES)})"
_DAY = phrases.ONE_DAY
_DAYS = rf"(?:{_DAY}(?:(?:{phrases.AND}| to | through |-){_DAY})*|weekdays?|day|weekends)"
#: Certainly a time.
_TIME = (
    r"(?:right now|now|at once|immediately|right away|hourly"
    rf"|in (?:{_SPAN}|half an hour|an? (?:second|minute|hour|day|week))"
    rf"|(?:every|each) (?:{_SPAN}|second|minute|hour|half hour|half an hour)"
    rf"|(?:(?:every |each |on )?{_DAYS}|daily) (?:at )?{_CLOCK}"
    rf"|(?:today|tomorrow|the day after tomorrow) at {_CLOCK}"
    rf"|at {_CLOCK}(?: (?:today|tomorrow))?"
    rf"|(?:on )?\d{{4}}-\d\d-\d\d(?:t| at )\S+)"
)
#: Probably meant as a time; the parser of schedules explains what is wrong with it.
_GUESS = r"(?:(?:in|every|each|at|on|next|this|tonight|tomorrow|today)\b.*?)"
_VERB = r"(?:(?:remind|tell|nudge|ask|let|notify|alert) me|check|watch|monitor|look at|keep an eye)"
_TELL_ME = r"(?:,? (?:and )?(?:tell|let|notify|alert) me\b.*)?"
_OBJECT = r"(?:(?:to|that)(?! (?:mon|tue|wed|thu|fri|sat|sun))|about|of|whether|if)\b.*"
#: Compiled at their first use, and then kept by `re`: they are large.
_FORMS = (
    rf"(?P<when>{_TIME}),? (?P<rest>{_VERB}\b.*)",
    rf"(?P<verb>(?:remind|tell|nudge|ask) me) (?P<when>{_TIME}) (?P<rest>{_OBJECT})",
    rf"(?P<rest>{_VERB}\b.*?),? (?P<when>{_TIME})(?P<after>{_TELL_ME})",
    rf"(?P<when>{_GUESS}),? (?P<rest>{_VERB}\b.*)",
    rf"(?P<verb>(?:remind|tell|nudge|ask) me) (?P<when>{_GUESS}) (?P<rest>{_OBJECT})",
)
_NORMAL_FORMS = {
    r"\beach\b": "every",
    r"\bright (?:now|away)\b": "now",
    r"\bhalf an hour\b|\bhalf hour\b": "30 minutes",
    r"\b(at .+) (today|tomorrow)$": r"\2 \1",
    r"\b(?:on )(?=weekdays|weekends)": "",
    **{rf"\b{name}\b": number for name, number in _NUMBERS.items()},
}


def split_time(words: str) -> tuple[str, str]:
    """Split a sentence into its time, found at any usual position, and the rest."""
    for form in _FORMS:
        if match := re.fullmatch(form, words, re.IGNORECASE):
            parts = match.groupdict(default="")
            rest = f"{parts.get('verb', '')} {parts['rest']}{parts.get('after', '')}"
            return _normalize(parts["when"]), rest.strip()
    return "", words


def read_number(word: str) -> int | None:
    """Read a whole number, in digits or in words."""
    digits = _NUMBERS.get(word.lower(), word)
    return int(digits) if re.fullmatch(r"[0-9]{1,4}", digits) else None


def _normalize(when: str) -> str:
    text = when.lower().strip(" ,")
    for pattern, replacement in _NORMAL_FORMS.items():
        text = re.sub(pattern, replacement, text)
    return text
