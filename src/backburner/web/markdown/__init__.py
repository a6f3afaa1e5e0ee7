"""Markdown of messages as safe HTML: of whole messages, and of replies while they are written.

Importing it loads parsers, so only the page does, at its first use.
"""

from backburner.web.markdown.draft_blocks import (
    BlockClosed,
    BlockText,
    DraftBlocks,
    DraftReset,
    DraftUpdate,
)
from backburner.web.markdown.rendered_messages import RenderedMessages
from backburner.web.markdown.rendering import plain, render

__all__ = [
    "BlockClosed",
    "BlockText",
    "DraftBlocks",
    "DraftReset",
    "DraftUpdate",
    "RenderedMessages",
    "plain",
    "render",
]
