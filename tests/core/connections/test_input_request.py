"""Input that servers ask for: which requests want a secret."""

import pytest

from backburner.core.connections.input_request import InputField, InputRequest, asks_for_secret


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
        request(name="pass_word"),
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
        request("Compass or map?", name="compass", title="Keyboard layout"),
    ],
)
def test_an_ordinary_request_is_not_taken_for_one(asked: InputRequest) -> None:
    assert not asks_for_secret(asked)


def test_a_request_to_visit_an_address_asks_for_no_secret_here() -> None:
    asked = InputRequest(key="one", message="Sign in with your password.", url="https://a.example")

    assert not asks_for_secret(asked)
