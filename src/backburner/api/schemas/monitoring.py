"""Health and readiness."""

from typing import Literal

from pydantic import BaseModel

from backburner import __version__


class HealthOut(BaseModel):
    status: Literal["ok"] = "ok"
    version: str = __version__


class ReadinessOut(BaseModel):
    status: Literal["ready", "not ready"]
    checks: dict[str, Literal["ok", "failed"]]
