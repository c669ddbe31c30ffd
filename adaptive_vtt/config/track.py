"""The section of a SPEC.toml about where figures go while an audit runs."""

from pydantic import Field

from ..results.tracking.backends import Name
from .section import Section


class TrackSpec(Section):
    """Where figures of a running audit are sent; addresses and keys come from the environment."""

    to: Name = Field(description="the tracker; each is an extra of its name")
    every: int = Field(20, description="calls between two sendings", ge=1)
    project: str = Field("adaptive-vtt", description="experiment or project that runs go under")
