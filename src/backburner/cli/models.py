"""Models in words, for people: never with a secret that could be used."""

from pydantic import SecretStr

from backburner.settings import Profile

#: Of a secret that is long enough for it.
LAST = 4


def describe(profile: Profile) -> str:
    """Say what a profile is, in a few words."""
    if profile.engine == "demo":
        return "the demo"
    parts = [profile.model, f"at {profile.address}"]
    if profile.key:
        parts.append(f"with a key {mask(profile.key)}")
    if profile.token:
        parts.append(f"with a token {mask(profile.token)}")
    return " ".join(parts)


def mask(secret: SecretStr) -> str:
    text = secret.get_secret_value()
    return f"that ends in {text[-LAST:]}" if len(text) >= 5 * LAST else "that is short"
