"""An agent without a model, for demonstrations: it understands a handful of sentences."""

from backburner.engine.demo.engine import DemoEngine

__all__ = ["DemoEngine"]
