"""The engine for servers with OpenAI's chat completions API: Ollama, llama.cpp, vLLM, hosted."""

from backburner.engine.openai.engine import OpenAIEngine

__all__ = ["OpenAIEngine"]
