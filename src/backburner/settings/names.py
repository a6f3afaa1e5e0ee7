"""What settings are called: in the environment, and the files they are read from."""

PREFIX = "BACKBURNER_"
#: Read by the tests of this project, not by the program.
NOT_OURS = "BACKBURNER_TEST_"
FILE_NAME = "backburner.toml"


def variable(name: str) -> str:
    return PREFIX + name.upper()
