"""Blocks of code with their language, a button to copy them, and three kinds of words."""

from collections.abc import Iterator

from backburner.web.markdown.characters import escape, escape_code, without_hidden
from backburner.web.markdown.languages import Language, compile_pattern, find_language

#: Larger blocks are not coloured.
MAX_COLOURED_CHARS = 50_000
_MAX_LANGUAGE_CHARS = 30


def write_code(code: str, info: str) -> str:
    words = info.split(maxsplit=1)
    word = words[0].strip("{}.") if words else ""
    language = find_language(word)
    if language is None:
        label, attribute = escape(without_hidden(word)[:_MAX_LANGUAGE_CHARS]), ""
    else:
        label, attribute = escape(language.name), f' data-language="{language.id}"'
    is_coloured = language is not None and len(code) <= MAX_COLOURED_CHARS
    body = _colour(code, language) if language and is_coloured else escape_code(code)
    return (
        f'<figure class="code"{attribute}><figcaption><span class="language">{label}</span>'
        '<button type="button" class="copy" data-copy="">Copy</button></figcaption>'
        f'<pre tabindex="0"><code>{body}</code></pre></figure>\n'
    )


def _colour(code: str, language: Language) -> str:
    return "".join(
        f'<span class="{kind}">{escape_code(text)}</span>' if kind else escape_code(text)
        for kind, text in _pieces(code, language)
    )


def _pieces(code: str, language: Language) -> Iterator[tuple[str, str]]:
    """Split code into pieces of a kind; the pieces together are the code."""
    end, follows_defining = 0, False
    for found in compile_pattern(language).finditer(code):
        kind = found.lastgroup or ""
        if kind == "word":
            word = found[0].lower() if language.ignores_case else found[0]
            is_keyword = word in language.keywords
            kind = "keyword" if is_keyword or follows_defining else ""
            follows_defining = is_keyword and word in language.defining
        if kind and found[0]:
            if end < found.start():
                yield "", code[end : found.start()]
            yield kind, found[0]
            end = found.end()
    if end < len(code):
        yield "", code[end:]
