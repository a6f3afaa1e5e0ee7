"""Model prices: those that the operator sets, else the list prices of the genai-prices package.

The package is used as installed and never updates itself over the network.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from math import ceil
from typing import Any

from backburner.core.allowance import MILLION, Price, find_price, parse_price
from backburner.settings.profiles import Profile, is_near


class PriceList:
    def __init__(
        self,
        prices: Mapping[str, str],
        profiles: Collection[Profile],
        *,
        now: Callable[[], datetime],
    ) -> None:
        self._profiles = {profile.model: profile for profile in profiles}
        of_profiles = {profile.model: profile.price for profile in profiles if profile.price}
        configured = {**of_profiles, **prices}
        self._configured = {name: parse_price(text) for name, text in configured.items()}
        self._now = now

    def find(self, model: str) -> Price | None:
        """Return the price of a model, or None if it is unknown."""
        price = find_price(model, self._configured)
        if price is not None:
            return price
        name = max((name for name in self._profiles if model.startswith(name)), key=len, default="")
        profile = self._profiles.get(name)
        if profile is None or profile.engine == "claude":
            return list_price(model, at=self._now())
        if profile.engine == "demo":
            return Price(input=0, output=0)
        # The model of a private server may have the name of a commercial one.
        if is_near(profile.address):
            return None
        return list_price(model, address=profile.address, at=self._now())


def list_price(model: str, *, address: str | None = None, at: datetime) -> Price | None:
    """Return the list price of the provider with this address, else of the model's maker."""
    # Imported late: it takes a tenth of a second, and the demo and private servers do not need it.
    from genai_prices import Usage, calc_price  # noqa: PLC0415

    for url in (address, None) if address else (None,):
        with suppress(LookupError):
            calculation = calc_price(
                Usage(), model, provider_api_url=url, genai_request_timestamp=at
            )
            return _convert(calculation.model_price)
    return None


def _convert(prices: Any) -> Price | None:
    input_price, output_price = _highest(prices.input_mtok), _highest(prices.output_mtok)
    if input_price is None or output_price is None:
        return None
    cache_read, cache_write = _highest(prices.cache_read_mtok), _highest(prices.cache_write_mtok)
    # Providers without a cache price charge cached tokens as input.
    return Price(
        input=input_price,
        output=output_price,
        cache_read=input_price if cache_read is None else cache_read,
        cache_write=input_price if cache_write is None else cache_write,
    )


def _highest(price: Any) -> int | None:
    """Convert dollars; where the price depends on the length of the prompt, take the highest."""
    if price is None:
        return None
    tiers: list[Decimal] = [price] if isinstance(price, Decimal) else [price.base]
    tiers += [tier.price for tier in getattr(price, "tiers", ())]
    return ceil(max(tiers) * MILLION)
