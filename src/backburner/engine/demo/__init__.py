"""An agent without a model: it understands a handful of sentences, and says so."""

from backburner.engine.demo.engine import DemoEngine

__all__ = ["DemoEngine"]
