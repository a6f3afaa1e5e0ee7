"""Results of tools as a model sees them: outside text in them is marked as data, as in prompts."""

from dataclasses import replace

from backburner.core.prompt import quote_outside
from backburner.ports import Offer, ToolResult


def fence(offer: Offer, result: ToolResult) -> ToolResult:
    """Mark the result of a tool that reads what others wrote; refusals are in our own words."""
    if not offer.outside or (result.failed and not result.outside):
        return result
    return replace(result, text=quote_outside(offer.tool.name, result.text))
