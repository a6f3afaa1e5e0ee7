"""One-line summaries of profiles; a secret shows at most its last characters."""

from pydantic import SecretStr

from backburner.settings import Profile

#: Characters shown of a secret that is at least five times as long.
SHOWN_CHARS = 4


def summarize(profile: Profile) -> str:
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
    is_long = len(text) >= 5 * SHOWN_CHARS
    return f"ending in {text[-SHOWN_CHARS:]}" if is_long else "(too short to show any of it)"
