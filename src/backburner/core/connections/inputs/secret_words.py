"""Requests of servers for passwords and other secrets, recognised by their words.

A filter and no guarantee: whoever wants a secret finds words that are not in it. So a question also
says whose words it shows, and where the answer goes.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator

from backburner.core.connections.inputs.input_request import InputRequest
from backburner.core.validation import is_hidden

#: Letters that look like Latin ones and do not decompose into them: Cyrillic, Greek and others.
_LOOKALIKES = """
    a 0430 03B1 0251   b 0432 03B2   c 0441   d 0501 0111   e 0435 03B5   g 0261   h 04BB 043D
    i 0456 03B9 0131   j 0458   k 043A 03BA   l 04CF 0142   m 043C 03BC   n 03BD 03B7   o 043E 03BF
    o 00F8 0585   p 0440 03C1   q 051B   r 0433   s 0455   t 0442 03C4   w 051D 03C9   x 0445 03C7
    y 0443 03C5   z 03B6
"""
#: Words beyond it belong to something else; it becomes a word of its own.
_SENTENCE_END = re.compile(r"[.!?]+(?=\s|$)")
_WORD_BREAKS = re.compile(r"[^\w|]+|_+")
_CAPITALS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def _latin() -> Iterator[tuple[int, str]]:
    letter = ""
    for each in _LOOKALIKES.split():
        if len(each) == 1:
            letter = each
        else:
            yield int(each, 16), letter


_LATIN = dict(_latin())


def _letters(text: str) -> str:
    """Take a text apart into letters, without their marks and what cannot be seen."""
    parts = unicodedata.normalize("NFKD", text).replace("|", " ")
    unseen = (c for c in set(parts) if is_hidden(c) or unicodedata.category(c)[0] == "M")
    return parts.translate({ord(c): None for c in unseen if not c.isspace()})


def _words(letters: str) -> str:
    """Write words in lower case, with a blank between them, and in Latin as far as they look so."""
    ended = _SENTENCE_END.sub(" | ", letters.lower().translate(_LATIN))
    return _WORD_BREAKS.sub(" ", ended)


def _any_of(words: str) -> str:
    return "|".join(_words(_letters(word)) for word in words.split())


#: Also in the middle of other words, and with blanks in them.
_PARTS = re.compile(
    _any_of("password passphrase passwort kennwort пароль 密码 密碼 パスワード 비밀번호")
)
#: Secrets, whatever is said of them.
_SECRETS = re.compile(
    r"\b(?:passcodes?|passwd|pwd|secrets?|t?otp|cvv2?|cvc2?|credentials?|ssn|mot de passe"
    r"|api ?keys?|private keys?|(?:access|encryption|signing) keys?"
    r"|(?:access|auth|bearer|refresh|security) tokens?|(?:seed|recovery) phrase|pin (?:code|number)"
    r"|card numbers?|social security|(?:log|sign) ?in (?:details?|data|info(?:rmation)?)"
    r"|(?:one time|2fa|mfa|sms|auth|authentication|authenticator|log ?in|sign ?in|verification"
    r"|recovery|security) codes?"
    rf"|{_any_of('contraseña senha wachtwoord lösenord adgangskode passord hasło heslo jelszó')})\b"
)
#: Secrets as the name of a value, or where they are asked for.
_NAMES = re.compile(r"\b(?:pin|token)\b")
_ASKED = re.compile(
    r"\b(?:your|enter|paste|type|copy|provide|submit|supply|(?:give|tell|send) (?:me|us)"
    r"|(?:answer|reply|respond) with|what is) "
    # What is between belongs to it, and is not what it is for.
    r"(?:(?!(?:at|for|how|in|of|on|per|that|to|where|which)\b)\w+ ){0,4}"
    r"(?:pin|token|(?:\d+|four|five|six|eight) (?:digit|character)s? code)\b"
    r"|\byour (?:\w+ ){0,2}key(?= *(?:\||$))"
)
#: Who asks for something says one of these.
_INVITES = re.compile(
    r"\b(?:your|enter|type|paste|copy|write|put|fill|give|tell|send|provide|submit|supply)\b"
)
#: A code that came another way proves who somebody is.
_SENT = r"(?:sent|texted|e ?mailed|received|sms|text message|authenticator)"
_SENT_CODE = re.compile(
    rf"\b(?:codes?|digits) (?:[\w|]+ ){{0,6}}{_SENT}\b"
    rf"|\b{_SENT} (?:[\w|]+ ){{0,6}}(?:codes?|digits)\b"
)
#: What the same words also mean.
_HARMLESS = re.compile(
    r"\b(?:(?:airport|area|bar|bank|booking|branch|city|colou?r|cost|country|coupon|currency|dial+ing"
    r"|discount|dress|error|exit|gift|hex|iata|iso|item|language|offer|post|postal|product|project"
    r"|promo|promotion|qr|reason|referral|region|return|sort|source|state|station|status|tax|voucher"
    r"|zip) codes?"
    r"|codes? (?:base|block|change|editor|freeze|owner|page|path|quality|review|search|snippet"
    r"|style)s?"
    r"|tokens? (?:address|amount|balance|bucket|budget|contract|count|id|length|limit|name|number"
    r"|pair|price|ring|standard|supply|swap|symbol|transfer|type|usage|window)(?:e?s)?"
    r"|pins? (?:board|colou?r|comment|icon|it|label|location|message|name|note|point|position|post"
    r"|size|style|that|them|this|title|type)s?"
    r"|(?:for|near|on) (?:the|this|your) pins?"
    r"|(?:do not|don t|never) (?:give|include|send|tell) [^|]{0,60}"
    r"|(?:issue|partition|primary|project|public|sort|space) (?:[gp]gp |ssh )?keys?)\b"
)


def asks_for_secret(request: InputRequest) -> bool:
    """Say whether a request wants a password or another secret, by its words and its fields.

    Secrets belong on a page of their own service, which a server can name as an address to visit.
    """
    if request.url:
        return False
    names = [text for each in request.fields for text in (each.name, each.title)]
    texts = [request.message, *names, *(each.description for each in request.fields)]
    return (
        any(each.format.lower() == "password" for each in request.fields)
        or any(_PARTS.search(_words(_letters(text)).replace(" ", "")) for text in texts)
        or _any_finds((_SECRETS, _ASKED), texts)
        or _any_finds((_NAMES,), names)
        # What a message speaks of, a field may ask for.
        or _any_finds((_SENT_CODE,), [". ".join(texts)])
        or any(map(_invites, _filled_in(request)))
    )


def _filled_in(request: InputRequest) -> Iterator[str]:
    """List the words that can be chosen, or stand in a value already."""
    for each in request.fields:
        for option in each.options:
            yield from (option.label, option.value)
        if isinstance(each.default, str):
            yield each.default


def _invites(text: str) -> bool:
    """Say whether words that may well speak of secrets ask for one."""
    words = _words(_letters(text))
    has_secret = _PARTS.search(words.replace(" ", "")) or _any_finds((_SECRETS, _NAMES), [text])
    return bool(has_secret and _INVITES.search(words))


def _any_finds(patterns: Iterable[re.Pattern[str]], texts: Iterable[str]) -> bool:
    # Capitals begin words in names of values, and hide them elsewhere.
    read = [
        _HARMLESS.sub(" ", _words(each))
        for text in texts
        for each in (_letters(text), _CAPITALS.sub(" ", _letters(text)))
    ]
    return any(pattern.search(text) for pattern in patterns for text in read)
