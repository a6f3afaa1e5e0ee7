"""No registered secret appears in the log."""

import json
import logging
import warnings
from typing import Literal

import pytest
import structlog

from backburner import log

SECRET = "correct-horse"  # noqa: S105 (it is the bait)

pytestmark = pytest.mark.usefixtures("restore_logging")
Styles = pytest.mark.parametrize("style", ["text", "json"])
Style = Literal["text", "json"]


class Shown:
    def __repr__(self) -> str:
        return f"<Shown {SECRET}>"


def fail_with_a_cause() -> None:
    raise ValueError(f"no {SECRET}") from KeyError(SECRET)


@Styles
def test_a_secret_is_redacted_wherever_it_appears(
    capsys: pytest.CaptureFixture[str], style: Style
) -> None:
    log.set_up(level="info", style=style, secrets=[SECRET])
    structlog.get_logger().info(
        f"before {SECRET} after",
        nested={"list": [SECRET, (SECRET,), {SECRET}], SECRET: 1},
        coded=SECRET.encode(),
        thing=Shown(),
    )
    err = capsys.readouterr().err

    assert SECRET not in err
    assert "before [secret] after" in err
    assert err.count("[secret]") == 7


@Styles
def test_a_secret_in_an_exception_and_in_its_cause_is_redacted(
    capsys: pytest.CaptureFixture[str], style: Style
) -> None:
    log.set_up(level="info", style=style, secrets=[SECRET])
    try:
        fail_with_a_cause()
    except ValueError:
        structlog.get_logger().exception("failed")
    err = capsys.readouterr().err

    assert SECRET not in err
    assert "KeyError: '[secret]'" in err
    assert "ValueError: no [secret]" in err


@Styles
def test_the_standard_library_and_uvicorn_are_redacted_too(
    capsys: pytest.CaptureFixture[str], style: Style
) -> None:
    log.set_up(level="info", style=style, secrets=[SECRET])
    logging.getLogger("a_library").warning("theirs %s", SECRET)
    try:
        fail_with_a_cause()
    except ValueError:
        logging.getLogger("uvicorn.error").exception("in the application")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn(f"beware {SECRET}", stacklevel=1)
    err = capsys.readouterr().err

    assert SECRET not in err
    assert "theirs [secret]" in err
    assert "ValueError: no [secret]" in err
    assert "beware [secret]" in err


def test_a_line_that_cannot_be_formatted_shows_no_secret(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log.set_up(level="info", style="text", secrets=[SECRET])
    logging.getLogger("a_library").warning("%d", SECRET)

    assert SECRET not in capsys.readouterr().err


@pytest.mark.parametrize("secret", ['quo"ted', "back\\slash", "line\nbreak", "schlüssel"])
@Styles
def test_a_quoted_secret_is_redacted_too(
    capsys: pytest.CaptureFixture[str], style: Style, secret: str
) -> None:
    log.set_up(level="info", style=style, secrets=[secret])
    structlog.get_logger().info("shown", plain=secret, python=repr(secret), json=json.dumps(secret))

    assert capsys.readouterr().err.count("[secret]") == 3


def test_a_secret_that_contains_another_is_redacted_completely() -> None:
    redactor = log.Redactor(["correct", "correct-horse"])

    assert redactor.clean("correct-horse") == "[secret]"


def test_a_value_too_short_to_be_a_secret_is_not_redacted() -> None:
    redactor = log.Redactor(["abc", ""])

    assert redactor.clean({"abc": ["abcdef", 1, None]}) == {"abc": ["abcdef", 1, None]}


def test_text_that_is_not_logged_is_redacted_too() -> None:
    log.set_up(level="info", style="json", secrets=[SECRET])

    assert log.clean(f"a {SECRET}") == "a [secret]"


def test_routine_messages_of_uvicorn_are_logged_at_debug_level_only(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log.set_up(level="info", style="json")
    logging.getLogger("uvicorn.error").info("Started")
    assert capsys.readouterr().err == ""

    log.set_up(level="debug", style="json")
    logging.getLogger("uvicorn.error").info("Started")
    assert "Started" in capsys.readouterr().err


@pytest.mark.parametrize(("level", "shown"), [("info", False), ("debug", True)])
def test_each_request_of_a_library_is_told_when_debugging_only(
    capsys: pytest.CaptureFixture[str], *, level: str, shown: bool
) -> None:
    log.set_up(level=level, style="text")
    for name in ("httpx", "httpx2", "openai", "mcp.client"):
        logging.getLogger(name).info("HTTP Request: POST http://x")
    err = capsys.readouterr().err

    assert ("HTTP Request" in err) is shown
