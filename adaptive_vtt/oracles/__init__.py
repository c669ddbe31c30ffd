"""Oracles: rules that judge an answer by what was expected, and return its loss."""

from typing import TYPE_CHECKING

from ..types import Case, Outcome, Received, Version
from ..utils.importing import lazily
from ..utils.registry import Registry
from .base import Oracle, OracleDefaults, Premise, adapted
from .labels import Consistency, Correctness, GivenLosses, Ordinal, TopClass

if TYPE_CHECKING:
    from .choice import MultipleChoice
    from .contains_truth import ContainsTruth
    from .masks import MaskBelow, MaskConsistency, MaskDrop, overlap
    from .reduced_captions import ReducedCaptions

__getattr__, __dir__ = lazily(__name__)

REGISTRY = Registry(
    "oracle",
    "oracles",
    (
        "needs_source",
        "judge(question, answer, expected, source_answer)",
        "expect(premise)?",
        "view(dataset)?",
        "applies(relation, concept)?",
    ),
    {
        "correctness": f"{__name__}.labels:Correctness",
        "top-class": f"{__name__}.labels:TopClass",
        "ordinal": f"{__name__}.labels:Ordinal",
        "consistency": f"{__name__}.labels:Consistency",
        "mask-below": f"{__name__}.masks:MaskBelow",
        "mask-drop": f"{__name__}.masks:MaskDrop",
        "mask-consistency": f"{__name__}.masks:MaskConsistency",
        "multiple-choice": f"{__name__}.choice:MultipleChoice",
        "contains-truth": f"{__name__}.contains_truth:ContainsTruth",
        "captions": f"{__name__}.reduced_captions:ReducedCaptions",
    },
)
"""Every kind of oracle that a SPEC.toml may name."""

__all__ = [
    "REGISTRY", "Case", "Consistency", "ContainsTruth", "Correctness", "GivenLosses", "MaskBelow",
    "MaskConsistency", "MaskDrop", "MultipleChoice", "Oracle", "OracleDefaults", "Ordinal",
    "Outcome", "Premise", "Received", "ReducedCaptions", "TopClass", "Version", "adapted",
    "overlap",
]  # fmt: skip
