"""What settings are called: in the environment, and the files they are read from."""

PREFIX = "BACKBURNER_"
#: Read by the tests of this project, not by the program.
NOT_OURS = "BACKBURNER_TEST_"
#: Read by the commands that talk to a server elsewhere.
OF_CLIENTS = ("URL", "TOKEN")
FILE_NAME = "backburner.toml"
#: Written by `backburner setup`, and all that may be in it.
MODELS_NAME = "models.toml"
OF_MODELS = ("profile", "background_profile", "profiles")


def variable(name: str) -> str:
    return PREFIX + name.upper()
