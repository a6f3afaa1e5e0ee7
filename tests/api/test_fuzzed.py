"""Whatever is sent that the description of the API allows is answered as it says."""

from pathlib import Path

import pytest
from support.servers import fuzzing


@pytest.mark.timeout(120)
def test_no_request_breaks_it_and_every_answer_is_as_described(tmp_path: Path) -> None:
    with fuzzing.running(tmp_path) as address:
        count, wrong = fuzzing.fuzz(address, seconds=45, examples=10)

    assert wrong == []
    assert count > 300
