"""Prices: the operator's first, then list prices, and none for models that are unknown."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backburner.core.allowance import Price, parse_price
from backburner.settings import PriceList, load

CLAUDE = {"engine": "claude", "key": "sk-ant-canary-31415926"}
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _empty_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path))


def find(model: str, **options: Any) -> Price | None:
    settings = load(**options)
    return PriceList(settings.prices, settings.profiles.values(), now=lambda: NOON).find(model)


def openai(model: str, address: str, **more: str) -> dict[str, Any]:
    return {"p": {"engine": "openai", "model": model, "address": address, **more}}


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("claude-sonnet-5-5-20260901", "2 in, 10 out, 2.5 cache write, 0.1 cache read"),
        ("claude-opus-4-1", "15 in, 75 out, 18.75 cache write, 1.5 cache read"),
        # It depends on the length of the prompt: the highest counts.
        ("claude-haiku-5-5", "0.5 in, 2.5 out, 0.625 cache write, 0.05 cache read"),
        # Without a price for writing to the cache, it costs as much as input.
        ("gpt-4o", "2.5 in, 10 out, 2.5 cache write, 1.25 cache read"),
    ],
)
def test_known_models_have_list_prices(model: str, price: str) -> None:
    assert find(model, profiles={"claude": CLAUDE}) == parse_price(price)


def test_a_model_has_the_list_price_of_the_provider_at_its_address() -> None:
    model = "llama-3.3-70b-versatile"
    hosted = find(model, profiles=openai(model, "https://api.groq.com/openai/v1"))

    assert hosted is not None
    assert hosted.input > 0
    assert find(model) is None


def test_an_unknown_model_has_no_price() -> None:
    assert find("qwen3:8b") is None
    assert find("model-x", profiles=openai("model-x", "https://models.example.org/v1")) is None


def test_a_model_of_a_private_server_has_no_list_price() -> None:
    assert find("gpt-4o", profiles=openai("gpt-4o", "http://127.0.0.1:11434/v1")) is None
    assert find("gpt-4o", profiles=openai("gpt-4o", "https://proxy.example.org/v1")) is not None


def test_the_demo_is_free() -> None:
    assert find("demo") == Price(input=0, output=0)


def test_prices_of_the_operator_override_list_prices() -> None:
    price, other = "1 in, 1 out", "2 in, 2 out"
    profiles = {"mine": {**CLAUDE, "price": other}}

    assert find("claude-sonnet-5-5", prices={"claude": price}) == parse_price(price)
    assert find("claude-sonnet-5-5", profiles=profiles) == parse_price(other)
    both = find("claude-sonnet-5-5", profiles=profiles, prices={"claude-sonnet-5-5": price})
    assert both == parse_price(price)
    two = {**profiles, "other": CLAUDE}
    assert find("claude-sonnet-5-5", profiles=two) == parse_price(other)
    local = openai("own", "http://127.0.0.1:1/v1", price=price)
    assert find("own", profiles=local) == parse_price(price)


def test_the_list_is_not_imported_before_it_is_needed_and_never_updated() -> None:
    program = """
import sys
from datetime import datetime, UTC
from backburner.settings import PriceList, load
import backburner.app.program
prices = PriceList({}, load().profiles.values(), now=lambda: datetime.now(UTC))
prices.find("demo")
assert "genai_prices" not in sys.modules
assert prices.find("claude-sonnet-5-5")
import threading
from genai_prices.data_snapshot import get_snapshot
assert threading.active_count() == 1
assert not get_snapshot().from_auto_update
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)
