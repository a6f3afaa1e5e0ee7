"""JSON with comments of others: what they write in it takes no longer than its length."""

import pytest

from backburner.core.connections.imports.json_text import read_json
from backburner.core.errors import BadRequest

#: With these, reading takes moments, or longer than anybody waits.
MANY = 100_000


def refusal(text: str) -> str:
    with pytest.raises(BadRequest) as error:
        read_json(text, "The file")
    return str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "[1," + "/" * MANY + "\nx",
        "[1," + "/**/" * MANY + "x",
        "[1," + " " * MANY + "x",
        '["' + '\\"' * MANY,
        "[" + ",/*" * MANY,
        "[" + ",//\n" * MANY,
    ],
    ids=["slashes", "comments", "blanks", "quotes", "open comments", "commas"],
)
@pytest.mark.timeout(10)
def test_no_text_takes_longer_to_read_than_its_length(text: str) -> None:
    assert "is not JSON" in refusal(text)


@pytest.mark.timeout(10)
def test_one_name_that_stands_twice_among_many_is_found() -> None:
    names = ",".join(f'"{number}":0' for number in range(MANY))

    assert f"the name '{MANY - 1}' twice" in refusal(f'{{{names},"{MANY - 1}":1}}')


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ('{"a": [1, 2, /* and */ ], // end\n}', {"a": [1, 2]}),
        ('{"a": "// no, comment",}', {"a": "// no, comment"}),
        ('["a\\"b", /* , ] */\n]', ['a"b']),
    ],
)
def test_comments_and_commas_at_the_end_are_left_out(text: str, content: object) -> None:
    assert read_json(text, "The file") == content


@pytest.mark.parametrize("text", ['["a', '["a\\', "[1, /* a", "[" * 5_000])
def test_what_has_no_end_is_refused(text: str) -> None:
    assert refusal(text).startswith("The file is ")
