"""A program whose relatives do not want to end. Each says who it is; then all wait for ever."""

import os
import signal
import time


def child() -> None:
    become("child")


def grandchild() -> None:
    if os.fork() == 0:
        become("grandchild")
    become("its parent")


def orphan() -> None:
    """Double fork, with a session of its own: nobody it descends from is left."""
    os.setsid()
    if os.fork() == 0:
        become("orphan")
    os._exit(0)


def stopped() -> None:
    if (pid := os.fork()) == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
        become("awake")
    os.waitpid(pid, os.WUNTRACED)
    become("parent of one that is stopped")


def breeder() -> None:
    """Always have some children, each with a session of its own."""
    say("breeder")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        if os.fork() == 0:
            os.setsid()
            time.sleep(0.2)
            os._exit(0)
        time.sleep(0.005)


def hopper() -> None:
    """Always be another process than a moment ago."""
    say("hopper")
    while True:
        if os.fork():
            os._exit(0)


def become(name: str) -> None:
    say(name)
    while True:
        signal.pause()


def say(name: str) -> None:
    os.write(1, f"{name}\n".encode())


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for be in (child, grandchild, orphan, stopped, breeder, hopper):
        if os.fork() == 0:
            be()
    become("command")
