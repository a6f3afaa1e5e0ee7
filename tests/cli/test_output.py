"""Output for people."""

from backburner.cli.output import printable


def test_outside_text_cannot_control_the_terminal() -> None:
    assert printable("a\x1b[2Jb\u202ec\n") == "a\\u001b[2Jb\\u202ec\n"
