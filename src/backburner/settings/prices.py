"""What models cost where the operator says nothing: the public list prices of Claude models.

In dollars for a million tokens. They may have changed since; what the operator sets wins.
"""

from collections.abc import Mapping

#: By what a model's name begins with. Where a price depends on the length of a prompt, the higher.
LIST_PRICES: Mapping[str, str] = {
    "claude-fable-5": "10 in, 50 out, 12.5 cache write, 1 cache read",
    "claude-fable-5-1": "10 in, 50 out, 12.5 cache write, 0.25 cache read",
    "claude-opus-5-5": "4 in, 20 out, 5 cache write, 0.2 cache read",
    "claude-opus-5": "5 in, 25 out, 6.25 cache write, 0.5 cache read",
    "claude-opus-4": "5 in, 25 out, 6.25 cache write, 0.5 cache read",
    "claude-opus-4-1": "15 in, 75 out, 18.75 cache write, 1.5 cache read",
    "claude-sonnet-5-5": "2 in, 10 out, 2.5 cache write, 0.1 cache read",
    "claude-sonnet-5": "2 in, 10 out, 2.5 cache write, 0.2 cache read",
    "claude-sonnet-4": "3 in, 15 out, 3.75 cache write, 0.3 cache read",
    "claude-haiku-5-5": "0.5 in, 2.5 out, 0.625 cache write, 0.05 cache read",
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
