"""Where the server listens."""

import socket
from contextlib import closing

import pytest

from backburner.app.serving import listen


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_small_pieces_of_an_answer_are_sent_at_once(host: str) -> None:
    with closing(listen(host, 0)) as listener:
        address = listener.getsockname()
        with closing(socket.create_connection(address)), closing(listener.accept()[0]) as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
