"""`backburner status`."""

from support.programs.cli_server import Call, Running


def test_status_shows_the_server_the_user_and_counts(talk: Call, running: Running) -> None:
    ended = talk("status")

    assert ended.code == 0
    fields = {line[:12].strip(): line[12:] for line in ended.out}
    assert fields["server"].endswith(f"at {running.address}, ready")
    assert fields["user"] == "Ann (member)"
    assert fields["questions"].endswith(" open")
    assert fields["notices"].endswith(" new")
