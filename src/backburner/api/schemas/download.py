"""Addresses of downloads."""

from datetime import datetime

from pydantic import BaseModel, Field

from backburner.actions.accounts.downloads import DownloadItem
from backburner.api.schemas.base import example, strict_example


class NewDownloadBody(BaseModel):
    model_config = strict_example(item="export")

    item: DownloadItem


class DownloadOut(BaseModel):
    model_config = example(
        address="/api/downloads/export/u_0.k_0.1794826860.5f0c",
        expires_at="2026-11-16T12:01:00Z",
    )

    address: str = Field(
        description="A path on this server. It opens with the cookie or the token of this request."
    )
    expires_at: datetime
