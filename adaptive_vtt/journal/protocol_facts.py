"""How an audit's model was asked: in which words, how replies were made, and how they were read."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass as checked


@checked(frozen=True, config=ConfigDict(extra="ignore", allow_inf_nan=False))
class ProtocolFacts:
    """``template``: what the prompts' template is called, and ``template_hash``, of its words;
    ``temperature`` of the replies; ``per_call``: "one" question or "all" of an image; ``regime``:
    how replies in words are read, and by which ``judge`` where that is not sure; ``left_out``:
    images that were not asked about, as no region of them is marked. None: none, or not known."""

    template: str | None = None
    template_hash: str | None = None
    temperature: float | None = None
    per_call: str | None = None
    regime: str | None = None
    judge: str | None = None
    left_out: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The fields, for JSON."""
        return asdict(self)


def protocol_of(raw: Mapping[str, Any]) -> Any:
    """The fields of ``ProtocolFacts`` from ``Journal.facts``, wherever they stand there."""
    told = raw.get("protocol", {})
    if not isinstance(told, dict):
        return told
    space, settings = raw["space"], raw["settings"]
    oracle = settings.get("oracle")
    oracle = oracle if isinstance(oracle, dict) else {}
    return {
        **told,
        "template_hash": settings.get("template"),
        "per_call": settings.get("answers"),
        "regime": oracle.get("regime"),
        "judge": _judge(oracle.get("judge")),
        "left_out": space.get("left_out", 0),
    }


def _judge(said: Any) -> Any:
    """What a judge is called, of what describes it; what describes none is refused as it is."""
    return said.get("name") or said.get("model") if isinstance(said, dict) else said
