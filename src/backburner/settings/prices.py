"""What models cost where the operator says nothing: the public list prices of Claude models.

In dollars for a million tokens. They may have changed since; what the operator sets wins.
"""

from collections.abc import Mapping

#: A model's name begins with it. A cache is written at 1.25 of the price of input, and read at 0.1.
LIST_PRICES: Mapping[str, str] = {
    "claude-opus-4-5": "5 in, 25 out, 6.25 cache write, 0.5 cache read",
    "claude-sonnet-4-5": "3 in, 15 out, 3.75 cache write, 0.3 cache read",
    "claude-haiku-4-5": "1 in, 5 out, 1.25 cache write, 0.1 cache read",
    "demo": "0 in, 0 out",
}


def all_prices(of_profiles: Mapping[str, str], of_operator: Mapping[str, str]) -> dict[str, str]:
    """Put the prices together; a price of ours gives way to any that the operator set for it."""
    theirs = {**of_profiles, **of_operator}
    # The longest name counts, and the operator's may be shorter than ours.
    ours = {
        name: price
        for name, price in LIST_PRICES.items()
        if not any(name.startswith(their) for their in theirs)
    }
    return {**ours, **theirs}
