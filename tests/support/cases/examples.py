"""How many examples a property is tried with: what it says, and in a soak many times that."""

from hypothesis import settings

#: What multiplies the number in a soak.
SOAK = 20


def examples(count: int) -> settings:
    soaking = settings.get_current_profile_name() == "soak"
    return settings(max_examples=count * SOAK if soaking else count)
