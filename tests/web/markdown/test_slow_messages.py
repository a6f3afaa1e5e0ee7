"""Messages that parsers are slow at take a bounded time, and are shown as they are if they must."""

import time

import pytest
from web.markdown.corpus import LONG, NORMAL, SLOW

from backburner.web.markdown import DraftBlocks, plain, render

#: Of one processor. On a common machine none takes half of it.
MAX_SECONDS = 3


@pytest.mark.parametrize("name", SLOW)
def test_a_slow_message_is_rendered_in_time(name: str) -> None:
    began = time.thread_time()

    render(SLOW[name])
    plain(SLOW[name])

    assert time.thread_time() - began < MAX_SECONDS


def test_what_looks_like_prices_is_read_once() -> None:
    began = time.thread_time()

    render(SLOW["prices"])

    # It takes a tenth of that.
    assert time.thread_time() - began < 0.5


def test_a_text_that_takes_too_many_steps_is_shown_as_it_is() -> None:
    text = SLOW["brackets"]

    assert render(text) == f'<pre class="plain" tabindex="0">{text}</pre>\n'


@pytest.mark.parametrize("name", [*NORMAL, "all"])
def test_a_normal_message_is_never_cut_short(name: str) -> None:
    html = render(NORMAL.get(name) or LONG * 20)

    assert 'class="plain"' not in html


@pytest.mark.parametrize(
    "name", ["items", "heads of tables", "open formulas", "lines", "open strings"]
)
def test_a_slow_reply_is_split_in_time(name: str) -> None:
    text, blocks = SLOW[name][:20_000], DraftBlocks()
    began = time.thread_time()

    for at in range(0, len(text), 500):
        blocks.feed(at, text[at : at + 500])

    assert time.thread_time() - began < MAX_SECONDS
