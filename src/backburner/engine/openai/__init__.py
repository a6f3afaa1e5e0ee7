"""The engine for what speaks OpenAI's chat completions: Ollama, llama.cpp, vLLM, hosted ones."""

from backburner.engine.openai.engine import OpenAIEngine

__all__ = ["OpenAIEngine"]
