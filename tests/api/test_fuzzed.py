"""Whatever is sent that the description of the API allows is answered as it says."""

from pathlib import Path


def test_no_request_breaks_it_and_every_answer_is_as_described(tmp_path: Path) -> None:
    # It takes half a second, and one process of three runs this.
    from support.servers import fuzzing  # noqa: PLC0415

    with fuzzing.running(tmp_path) as address:
        tally = fuzzing.fuzz_once(address, examples=3)

    assert tally.failures == {}
    assert len(tally.sent) > 70
    assert tally.sent.total() > 2 * len(tally.sent)
