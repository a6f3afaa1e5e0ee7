"""HTML as text: the visible text, whatever the markup is like."""

from time import monotonic, process_time

import pytest

from backburner.gateway.readable import PARSE_SECONDS, html_to_text

BASE = "https://example.com/dir/page"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("plain", "plain"),
        ("<p>one<p>two", "one\n\ntwo".replace("\n\n", "\n")),
        ("<h2>Head</h2>text", "## Head\ntext"),
        ("<ul><li>a</li><li>b</li></ul>", "- a\n\n- b"),
        ("a &amp; b &lt;c&gt; &#228;", "a & b <c> ä"),
        ("<a href='x'>rel</a>", "rel (https://example.com/dir/x)"),
        ("<a href='#top'>top</a> <a>none</a> <a href='javascript:x()'>js</a>", "top none js"),
        ("<a href='http://[x'>broken</a>", "broken"),
        ("<script>a()</script><style>b{}</style><noscript>c</noscript>d", "d"),
        ("<head><title> A\n title </title><meta></head><body>text", "A title\n\ntext"),
        ("<head><title>T</title><body>head was not closed", "T\n\nhead was not closed"),
        ("a\n   b\t c", "a b c"),
        ("<pre>a\n  b</pre>", "a\n  b"),
        ("</a></pre></script>ends without beginnings", "ends without beginnings"),
        ("<!-- no --><p>yes", "yes"),
        ("", ""),
        ("a<script>" + "x" * 300_000 + "</script >b<SCRIPT>c</SCRIPT>d", "abd"),
        ("seen<!-- never closed <p>unseen", "seen"),
        ("a < b", "a < b"),
    ],
)
def test_html_is_reduced_to_its_visible_text(html: str, text: str) -> None:
    assert html_to_text(html, base=BASE) == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("a<![x b", "a<![x b"),
        ("a<![CDATA[x]]> b<![ c", "a b<![ c"),
        ("a<!<!---->[x b", "a<![x b"),
        ("a<![endif]> b", "a b"),
        ("a<![if !IE]> b<![endif]>", "a b"),
    ],
)
def test_a_section_does_not_make_a_page_unreadable(html: str, text: str) -> None:
    assert html_to_text(f"{html}<p>after", base=BASE) == f"{text}\nafter"


def test_end_tags_of_elements_that_are_not_open_cost_nothing() -> None:
    """Looking for each in all that are open would take minutes."""
    open_and_not_closed = "<svg><math>" * 20_000 + "</object>" * 20_000
    before = process_time()

    assert html_to_text(f"seen{open_and_not_closed}", base=BASE) == "seen"
    nothing_open = process_time()
    html_to_text("seen" + "<p>" * 40_000 + "</object>" * 20_000, base=BASE)

    # As long as the same number of tags without anything open.
    assert nothing_open - before < 3 * (process_time() - nothing_open)


@pytest.mark.parametrize(
    "piece", ["<!", "<", "<!--", "</", "<a ", "<a href='", "<![CDATA[", "&", "<p>", "<script>"]
)
def test_parsing_time_is_bounded_for_hostile_pages(piece: str) -> None:
    before = monotonic()

    html_to_text(piece * (1_000_000 // len(piece)), base=BASE)

    assert monotonic() - before < PARSE_SECONDS + 10
