"""Code is shown as it is, with its language, and in three colours."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from web.markdown.structure import Structure

from backburner.web.markdown import render
from backburner.web.markdown.code_blocks import MAX_COLOURED_CHARS, write_code
from backburner.web.markdown.languages import _languages, find_language

HEAD = (
    '<button type="button" class="copy" data-copy="">Copy</button></figcaption>'
    '<pre tabindex="0"><code>'
)


def code(language: str, text: str) -> str:
    """Return what stands between the tags of the code."""
    html = write_code(text, language)
    return html.partition(HEAD)[2].removesuffix("</code></pre></figure>\n")


def colours(language: str, text: str) -> dict[str, str]:
    events = Structure(write_code(text, language)).events
    pairs = pairwise(events)
    return {
        following[1]: dict(event[2]).get("class") or ""
        for event, following in pairs
        if event[:2] == ("start", "span") and following[0] == "text"
    }


def test_a_block_has_its_language_and_a_button() -> None:
    assert render("```py title=x\nreturn\n```") == (
        '<figure class="code" data-language="python"><figcaption>'
        f'<span class="language">Python</span>{HEAD}'
        '<span class="keyword">return</span>\n</code></pre></figure>\n'
    )


def test_a_block_without_language_or_of_an_unknown_one() -> None:
    assert render("    a").startswith(
        f'<figure class="code"><figcaption><span class="language"></span>{HEAD}a'
    )
    assert '<figure class="code"><figcaption><span class="language">&lt;b&gt;</span>' in render(
        "```<b>\na\n```"
    )


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("python", "@x\ndef f(): # c\n  return r'a'", {"def": "keyword", "f": "keyword"}),
        ("python", "# if\n'''a\n# b'''", {"# if": "comment", "'''a\n# b'''": "literal"}),
        ("js", "const a = `b${c}` // d", {"const": "keyword", "`b${c}`": "literal"}),
        ("rust", "fn a<'b>(c: &'b str) {}", {"fn": "keyword", "a": "keyword", "str": "keyword"}),
        (
            "json",
            '{"a": "b", "c": 1.5e3}',
            {'"a"': "keyword", '"b"': "literal", "1.5e3": "literal"},
        ),
        ("yaml", "a-b: 'c' # d", {"a-b": "keyword", "'c'": "literal", "# d": "comment"}),
        ("sql", "Select 'it''s' -- x", {"Select": "keyword", "-- x": "comment"}),
        (
            "bash",
            "echo $# # c\n'a # b'",
            {"echo": "keyword", "# c": "comment", "'a # b'": "literal"},
        ),
        ("html", '<a b="c">don\'t</a><!-- d -->', {"<a": "keyword", '"c"': "literal"}),
        ("diff", "@@ 1 @@\n-a\n+b\n c", {"-a": "comment", "+b": "literal", "@@ 1 @@": "keyword"}),
        ("c", "#include <a>\n/* b\n */ int c;", {"#include": "keyword", "/* b\n */": "comment"}),
        ("go", "type A struct{} // b", {"type": "keyword", "A": "keyword", "// b": "comment"}),
    ],
)
def test_colours(language: str, text: str, expected: dict[str, str]) -> None:
    found = colours(language, text)

    assert {key: found.get(key) for key in expected} == expected


def test_a_name_that_contains_a_keyword_has_no_colour() -> None:
    assert code("python", "returned if_ x") == "returned if_ x"


def test_a_large_block_has_no_colours() -> None:
    text = "return 1\n" * (MAX_COLOURED_CHARS // 9 + 1)

    assert code("python", text) == text


def test_no_name_of_a_language_is_given_twice() -> None:
    languages = {language.id: language for language in _languages().values()}
    names = [name for each in languages.values() for name in (each.id, *each.aliases)]

    assert sorted(names) == sorted(set(names))
    assert find_language("PYTHON") is find_language("py")


@pytest.mark.parametrize("name", sorted({each.id for each in _languages().values()}))
@settings(max_examples=25)
@given(
    st.lists(
        st.sampled_from(
            [*"\"'`#/*-<>=!@$%\\()[]{}:;.,|&+ \n\t", "a", "if", "def", "1", "--", "/*", "*/", "'''"]
        ),
        max_size=30,
    ).map("".join)
)
def test_code_stays_as_it_is(name: str, text: str) -> None:
    html = write_code(text, name)
    head = Structure(html.partition("<pre")[0] + "</figure>").text

    assert Structure(html).text == head + text + "\n"
