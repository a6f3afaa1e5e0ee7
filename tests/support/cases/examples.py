"""The number of examples of a property test, multiplied in a soak."""

from hypothesis import settings

#: The factor for the number of examples in a soak.
SOAK = 20


def examples(count: int) -> settings:
    soaking = settings.get_current_profile_name() == "soak"
    return settings(max_examples=count * SOAK if soaking else count)
