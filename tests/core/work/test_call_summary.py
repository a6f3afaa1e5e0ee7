"""A call in one line: short, and without secrets."""

import pytest

from backburner.core.work.call_summary import MAX_SUMMARY_CHARS, summarize_arguments


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("git log --oneline | head", "git log --oneline | head"),
        ("make\n  test", "make test"),
        ("curl -H 'Authorization: token s3cret' a.org", "curl -H 'Authorization: [hidden]' a.org"),
        ("curl -H 'X: Bearer s3cret' a.org", "curl -H 'X: Bearer [hidden]' a.org"),
        ("curl https://ann:s3cret@a.org/x", "curl https://[hidden]@a.org/x"),
        ("curl 'a.org/?key=s3cret&page=2'", "curl 'a.org/?key=[hidden]&page=2'"),
        ("curl -u ann:s3cret a.org", "curl -u [hidden] a.org"),
        ("PGPASSWORD=s3cret psql", "PGPASSWORD=[hidden] psql"),
        ("psql --password s3cret -h db", "psql --password [hidden] -h db"),
        ("""post '{"api_key": "s3cret s3cret"}'""", """post '{"api_key": [hidden]}'"""),
        ("echo sk-ant-s3crets3cret", "echo [hidden]"),
        (f"echo {'s3cret' * 6}", "echo [hidden]"),
        ("cat /etc/passwd", "cat /etc/passwd"),
    ],
)
def test_a_command_is_shown_as_typed_but_for_secrets(command: str, shown: str) -> None:
    assert summarize_arguments({"command": command, "network": True}) == shown


@pytest.mark.parametrize("name", ["password", "api_key", "apiKey", "accessToken", "DB_PASSWORD"])
def test_the_value_of_an_argument_with_such_a_name_is_hidden(name: str) -> None:
    assert summarize_arguments({name: "s3cret", "page": 2}) == f"{name}=[hidden] page=2"


def test_other_calls_are_shown_by_names_and_short_values() -> None:
    arguments = {"path": "a.txt", "content": "line\nline", "to": "x" * 61, "at": {"token": "abc"}}

    assert summarize_arguments(arguments) == (
        'path=a.txt content=(9 characters) to=(61 characters) at={"token":[hidden]}'
    )
    assert summarize_arguments({}) == ""


def test_a_summary_is_one_short_line_without_hidden_characters() -> None:
    shown = summarize_arguments({"command": "echo " + "x y\n" * 10_000 + "\x1b[31m"})

    assert len(shown) == MAX_SUMMARY_CHARS
    assert shown.endswith("…")
    assert summarize_arguments({"command": "a\x1b[31m"}) == "a\\u001b[31m"
