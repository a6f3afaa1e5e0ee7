"""Markdown of messages becomes the HTML that the page has styles for."""

import asyncio
import re

import pytest
from markupsafe import Markup
from web.markdown.corpus import LONG, NORMAL
from web.markdown.structure import Structure

from backburner.web.markdown import plain, render
from backburner.web.markdown.rendering import MAX_PARSED_CHARS


def link(url: str, text: str, host: str | None = None) -> str:
    shown = f' <bdi class="host">{host}</bdi>' if host else ""
    return f'<a href="{url}" target="_blank" rel="noopener noreferrer nofollow">{text}{shown}</a>'


def paragraph(source: str) -> str:
    """Render one paragraph, and order the attributes as `link` does."""
    html = render(source).removeprefix("<p>").removesuffix("</p>\n")
    tail = ' rel="noopener noreferrer nofollow"'
    return html.replace(f'{tail} target="_blank"', f' target="_blank"{tail}')


def test_a_message_is_markup_that_templates_do_not_escape_again() -> None:
    assert isinstance(render("a"), Markup)


def test_a_new_line_in_a_message_stays() -> None:
    assert render("one\ntwo\n\nthree") == "<p>one<br>\ntwo</p>\n<p>three</p>\n"


def test_headings_are_below_those_of_the_page() -> None:
    assert render("# a\n## b\n### c\n#### d\n##### e\n###### f\n\ng\n===") == (
        "<h3>a</h3>\n<h4>b</h4>\n<h5>c</h5>\n<h6>d</h6>\n<h6>e</h6>\n<h6>f</h6>\n<h3>g</h3>\n"
    )


def test_inline_marks() -> None:
    assert paragraph("*a* **b** ~~c~~ `d<` ~5 to ~6") == (
        "<em>a</em> <strong>b</strong> <s>c</s> <code>d&lt;</code> ~5 to ~6"
    )


def test_a_task_says_whether_it_is_done() -> None:
    html = render("- [x] a\n- [ ] b\n\n  c")

    assert html.count('<li class="task">') == 2
    boxes = [dict(given) for kind, tag, given in Structure(html).events if tag == "input"]
    assert [(box["aria-label"], "checked" in box) for box in boxes] == [
        ("Done", True),
        ("To do", False),
    ]


def test_the_box_of_a_task_stands_in_its_first_paragraph() -> None:
    assert '<li class="task"><p><input ' in render("- [x] a\n\n  b")
    assert '<li class="task"><input ' in render("- [x] a")


def test_a_table_has_heads_and_sides() -> None:
    assert render("|a|b|c|\n|:-|:-:|-:|\n|1|2|3|") == (
        '<div class="table" tabindex="0"><table><thead><tr><th scope="col" class="left">a</th>'
        '<th scope="col" class="center">b</th><th scope="col" class="right">c</th></tr></thead>'
        '<tbody><tr><td class="left">1</td><td class="center">2</td><td class="right">3</td></tr>'
        "</tbody></table></div>\n"
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("[a](https://b.example/c)", link("https://b.example/c", "a")),
        ("https://b.example/c", link("https://b.example/c", "https://b.example/c")),
        ("(http://b.example).", f"({link('http://b.example', 'http://b.example')})."),
        (
            "https://b.example/a_(b)!",
            link("https://b.example/a_(b)", "https://b.example/a_(b)") + "!",
        ),
        ("www.b.example", link("https://www.b.example", "www.b.example")),
        ("<https://b.example>", link("https://b.example", "https://b.example")),
        ("https://b.example/x.html", link("https://b.example/x.html", "https://b.example/x.html")),
        ("http://localhost:8080/a", link("http://localhost:8080/a", "http://localhost:8080/a")),
        ("me@b.example, you", link("mailto:me@b.example", "me@b.example") + ", you"),
        ("`https://b.example`", "<code>https://b.example</code>"),
        ("https://b.example\u3002x", link("https://b.example", "https://b.example") + "\u3002x"),
    ],
)
def test_a_link(source: str, expected: str) -> None:
    assert paragraph(source) == expected


@pytest.mark.parametrize(
    ("source", "host"),
    [
        ("[good.example](https://evil.example/a)", "evil.example"),
        ("[https://good.example/login](https://evil.example)", "evil.example"),
        ("[Sign in at www.good.example](https://evil.example)", "evil.example"),
        ("[good\uff0eexample](https://evil.example)", "evil.example"),
        ("[go\u00adod.example](https://evil.example)", "evil.example"),
        ("[evil.example.good.example](https://evil.example)", "evil.example"),
        ("[http://10.0.0.1/x](http://10.0.0.2/x)", "10.0.0.2"),
        ("[http://router/x](http://evil.example/x)", "evil.example"),
        ("[](https://evil.example)", "evil.example"),
        ("https://good.example@evil.example/", "evil.example"),
        ("[b\u00fccher.example](https://b\u00fccher.example)", "xn--bcher-kva.example"),
        ("[you@good.example](mailto:me@evil.example)", "me@evil.example"),
        ("![good.example](https://evil.example/a.png)", "evil.example"),
        ("[Good](https://evil.example)", None),
        ("[good.example](https://www.good.example/a)", None),
        ("[https://good.example/evil.html](https://good.example/evil.html#a)", None),
        ("[me](mailto:me@good.example)", None),
    ],
)
def test_a_link_whose_text_names_another_host_shows_its_own(source: str, host: str | None) -> None:
    html = render(source)

    if host is None:
        assert "<bdi" not in html
    else:
        assert f'<bdi class="host">{host}</bdi></a>' in html


def test_an_image_is_a_link_that_loads_nothing() -> None:
    assert paragraph("![a *b*](https://b.example/c.png 'd')") == link(
        "https://b.example/c.png", "a b"
    )
    assert paragraph("![](https://b.example/c.png)") == link(
        "https://b.example/c.png", "Image", "b.example"
    )


def test_an_image_in_a_link_is_its_text() -> None:
    assert paragraph("[![a](https://b.example/c.png)](https://d.example)") == link(
        "https://d.example", "a"
    )


@pytest.mark.parametrize(
    "source", ["$a_1 * b_2$", "$$a_1 * b_2$$ x", "\\(a_1 * b_2\\)", "\\[a_1 * b_2\\] x"]
)
def test_a_formula_stays_as_it_is_written(source: str) -> None:
    formula = source.removesuffix(" x")

    assert f'<code class="math">{formula}</code>' in render(f"with {source}")


@pytest.mark.parametrize(
    "source", ["$$\na_1 * b_2\n- c\n$$", "\\[\n# a\n\\]", "$$a * b * c$$", "$$a\n= b$$"]
)
def test_a_formula_of_its_own_lines(source: str) -> None:
    assert render(source) == f'<pre class="math" tabindex="0"><code>{source}</code></pre>\n'


@pytest.mark.parametrize(
    "source",
    [
        NORMAL["prices"],
        "US$5 and A$6",
        "$$ alone",
        "\\[a link\\](https://b.example)",
        "$5-$10",
        "\\$a\\$",
        "$$\n\nnot closed before a blank line\n$$ x",
    ],
)
def test_prices_and_escapes_are_no_formulas(source: str) -> None:
    assert "math" not in render(source)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("Call foo\\(bar\\) or file\\(s\\).", "Call foo(bar) or file(s)."),
        ("It costs \\(about\\) five.", "It costs (about) five."),
        ("\\(see the notes\\)", "(see the notes)"),
        ("\\(i.e. x\\)", "(i.e. x)"),
        ("since \\(2024\\)", "since (2024)"),
        ("C:\\Program Files \\(x86\\)\\app", "C:\\Program Files (x86)\\app"),
        ("grep \\(a|b\\) and \\[a-z\\]", "grep (a|b) and [a-z]"),
        ("s/\\(a\\)\\(b\\)/c/", "s/(a)(b)/c/"),
        ("my \\(see my_file\\)", "my (see my_file)"),
        ("\\[x\\] done, \\[ \\] open", "[x] done, [ ] open"),
        ("\\[1\\] first note", "[1] first note"),
        ("\\[not a link\\]", "[not a link]"),
        ("\\[x\\]", "[x]"),
    ],
)
def test_escaped_brackets_around_words_are_brackets(source: str, shown: str) -> None:
    assert paragraph(source) == shown


@pytest.mark.parametrize(
    "formula",
    [
        *("\\(n\\)", "\\(O(n)\\)", "\\(a, b\\)", "\\(x + y\\)", "\\(\\alpha\\)", "\\(p = 0.05\\)"),
        *("\\(x_1\\)", "\\(2^n\\)", "\\(\\log n\\)", "\\(\\text{cost} \\le 3\\)", "\\(x < 2\\)"),
        *("\\[E = mc^2\\]", "\\[x + y\\]", "\\[\\sum_{i} a_i\\]"),
    ],
)
def test_escaped_brackets_around_a_formula_are_a_formula(formula: str) -> None:
    shown = re.sub("<", "&lt;", formula)
    assert f'<code class="math">{shown}</code>th' in render(f"The {formula}th one")
    if formula.startswith("\\["):
        assert render(formula) == f'<pre class="math" tabindex="0"><code>{formula}</code></pre>\n'


def test_what_is_nested_too_deeply_is_kept_as_text() -> None:
    for source in ("> " * 60 + "end", "- " * 60 + "end", "[" * 60 + "end"):
        assert "end" in render(source)


def test_a_text_that_is_too_long_is_shown_as_it_is() -> None:
    text = "*a* " * (MAX_PARSED_CHARS // 4 + 1)

    assert render(text) == f'<pre class="plain" tabindex="0">{text}</pre>\n'


def test_plain_text_has_no_markup() -> None:
    source = (
        "# A *b*\n\n- [c](http://d.example)\n- [x] e `f`\n\n|g|h|\n|-|-|\n|i|j|\n\n```\nk\nl\n```"
    )

    assert plain(source) == "A b c e f g h i j k l"
    assert plain("![a](http://b.example/c.png) \u202ed\x1b[0m <b>e</b>") == "a d <b>e</b>"


async def test_threads_render_at_the_same_time() -> None:
    expected = render(LONG)

    found = await asyncio.gather(*(asyncio.to_thread(render, LONG) for _ in range(16)))

    assert set(found) == {expected}
