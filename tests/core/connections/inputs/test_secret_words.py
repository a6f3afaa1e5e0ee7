"""Which requests of servers want a secret."""

import pytest

from backburner.core.connections.inputs.input_request import (
    InputField,
    InputKind,
    InputOption,
    InputRequest,
)
from backburner.core.connections.inputs.secret_words import asks_for_secret


def choose(label: str, *, default: str = "") -> InputRequest:
    options = (InputOption("a", label), InputOption("b", "No"))
    fields = (
        InputField(name="hint", kind=InputKind.CHOICE, options=options),
        InputField(name="value", default=default),
    )
    return InputRequest(key="one", message="Please fill this in.", fields=fields)


def request(
    message: str = "Which calendar?",
    *,
    name: str = "x",
    title: str = "",
    description: str = "",
    format: str = "",  # noqa: A002 (as the field has it)
) -> InputRequest:
    field = InputField(name=name, title=title, description=description, format=format)
    return InputRequest(key="one", message=message, fields=(field,))


@pytest.mark.parametrize(
    "asked",
    [
        request("Please enter your password."),
        request("Bitte gib dein Passwort ein"),
        request("Enter the one-time code that we sent you."),
        request(name="apiKey"),
        request(name="api_key"),
        request(name="client-secret"),
        request(name="pin"),
        request(name="token"),
        request(title="Access Token"),
        request(description="The card number, without spaces"),
        request(name="value", format="password"),
        request(name="pwd"),
        request(name="apikey"),
        request(name="APIKey"),
        request(name="userpassword"),
        request(name="password2"),
        request(name="cvv2"),
        request("Bitte gib dein Kontopasswort ein"),
        # Letters of full width.
        choose("Write your mail password into the field below"),
        choose("Yes", default="<type the password of your mailbox here>"),
        request("Enter your \uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44."),
    ],
)
def test_a_request_for_a_secret_is_recognised(asked: InputRequest) -> None:
    assert asks_for_secret(asked)


@pytest.mark.parametrize(
    "asked",
    [
        request(),
        request("Pin this message to the board?"),
        request("How many tokens may the summary have?", name="max_tokens"),
        request("Who keeps the secretariat informed?", name="secretary"),
        request(name="email", format="email"),
        # Of a ticket, for example.
        choose("Password reset", default="Token of Alice has expired"),
        request("Compass or map?", name="compass", title="Keyboard layout"),
    ],
)
def test_an_ordinary_request_is_not_taken_for_one(asked: InputRequest) -> None:
    assert not asks_for_secret(asked)


@pytest.mark.parametrize(
    "message",
    [
        "Paste your GitHub token",
        "Paste your token, it begins with ghp_",
        "Copy the token from the settings of GitHub",
        "What is your token?",
        "Enter your PIN",
        "Enter your user name and PIN",
        "Never share your PIN. Type it here.",
        "Send us the PIN of your card",
        "Type the 4-digit security PIN here",
        "Enter the 6-digit code that we sent you by SMS",
        "We texted you a code. Type it here.",
        "Answer with the code you received",
        "Enter the code from your authenticator app",
        "Enter the four-digit code",
        "Provide an access key",
        "Enter your mail's key",
        "Enter your login details",
        "pass word",
        "Your pAssword, please",
        "Enter your p.a.s.s.w.o.r.d",
        "pass|word?",
        # Marks, characters that cannot be seen, and letters that look the same.
        "P\u00e1ssword",
        "Pa\u0301ssword",
        "Enter your pass\u034fword",
        "Enter your pass\ufe0fword",
        "Enter your pass\u00adword",
        "Please enter your \u0440\u0430ssword",
        "Enter your \u03a1\u0399\u039d",
        "Enter your one\u2011time code",
        # Other languages.
        "has\u0142o",
        "\u043f\u0430\u0440\u043e\u043b\u044c",
        "\u8bf7\u8f93\u5165\u5bc6\u7801",
        "\u30d1\u30b9\u30ef\u30fc\u30c9",
        "\ube44\ubc00\ubc88\ud638\ub97c",
    ],
)
def test_a_message_that_asks_for_a_secret_is_recognised(message: str) -> None:
    assert asks_for_secret(request(message))
    assert asks_for_secret(request(description=message))


@pytest.mark.parametrize(
    "message",
    [
        "Which PIN colour should the map have?",
        "Type the message to pin",
        "Your favourite number (do not give us your phone number, pin, or other sensitive info)",
        "Enter the post that you want to pin",
        "A label for your pin",
        "zip code",
        "Enter your zip code",
        "Your postal code, please",
        "Type the country code",
        "Enter the discount code that we sent you by email",
        "Enter the error code of the machine",
        "Paste your source code",
        "Which code review was sent to Bob?",
        "Which branch code?",
        "Which token bucket?",
        "Enter the size of the token bucket",
        "Enter your token limit",
        "Type of token?",
        "Enter your name. Token bucket or queue?",
        "Provide the project key",
        "Paste your public SSH key",
        "Share the keynote with your team?",
        "Enter the tracking number of the parcel that was sent",
        "Should the report be sent by email?",
        "Enter your opinion",
        "Your typing speed",
    ],
)
def test_an_ordinary_message_is_not_taken_for_one(message: str) -> None:
    assert not asks_for_secret(request(message))
    assert not asks_for_secret(request(description=message))


@pytest.mark.parametrize("name", ["token_bucket", "pinColour", "countryCode", "max_tokens", "key"])
def test_the_name_of_an_ordinary_value_is_not_taken_for_one(name: str) -> None:
    assert not asks_for_secret(request(name=name, title=name))


def test_what_a_message_speaks_of_a_field_may_ask_for() -> None:
    assert asks_for_secret(request("We sent you an SMS.", title="Code"))
    assert not asks_for_secret(request("Which country?", title="Code"))


def test_a_request_to_visit_an_address_asks_for_no_secret_here() -> None:
    asked = InputRequest(key="one", message="Sign in with your password.", url="https://a.example")

    assert not asks_for_secret(asked)
