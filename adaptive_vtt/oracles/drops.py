"""Drops: the answer about a changed image is judged together with that about the original.

With the losses L_changed and L_original of one question about both images,
y = (1 + L_changed - L_original) / 2 is in [0, 1]. Its mean R_y over the questions of a relation is
certified like any rate, and with it their drop, R_changed - R_original = 2 R_y - 1. The model is
asked about an original once; all of its changes are compared with that answer.
"""

from collections.abc import Sequence
from dataclasses import replace

from ..errors import unexpected
from ..relations.graded import Identity
from ..types import Case, FollowUp, Indices, Outcome, PairedAnswer, Sample, Value
from .base import OracleDefaults, Premise
from .paired import Expected, Paired


class Drops(Paired):
    """Oracle that judges the answers about a changed image and its original by another oracle.

    The details of an outcome contain both answers and losses: "a" of the changed image, "b" of the
    original. A question counts if it counts for both.

    Args:
        oracle: The oracle that judges each answer.

    Raises:
        InputError: The oracle cannot judge an answer about an original image.
    """

    models = 1
    compared = ("the changed image", "the original image")

    def __init__(self, oracle: OracleDefaults) -> None:
        alone, name = oracle.alone(), type(oracle.original).__name__
        if oracle.tells_losses:
            raise _refused("images under relations", "a pool, whose items nothing changes")
        if alone is None:
            got = f"{name}, which compares it with the original itself"
            raise _refused("an oracle that judges each answer by itself", got, 'take "relations"')
        if alone.judge_by is not None:
            got = "one with a judge model"
            raise _refused("an oracle whose rule reads replies", got, "take [oracle.judge] out")
        super().__init__(alone)
        self.needs_source = self.whole_source = True

    def alone(self) -> None:
        return None

    def record(self, value: Value, sample: Sample, concept: str) -> float | None:
        return self.oracle.record(value, sample, concept)

    def models_asked(self, questions: Indices) -> Indices:
        return OracleDefaults.models_asked(self, questions)

    def expect(self, premise: Premise) -> Expected:
        """Return the expected answers about the changed image and about the original."""
        changed = replace(premise, source_answer=None)
        original = replace(changed, relation=Identity(), follow_up=FollowUp(premise.sample.image))
        return Expected(self.oracle.expect(changed), self.oracle.expect(original))

    def judge_call(self, cases: Sequence[Case], values: Sequence[Value]) -> list[Outcome]:
        if not cases:
            return []
        originals = cases[0].source_answer
        assert isinstance(originals, tuple)
        both = [PairedAnswer(*pair) for pair in zip(values, originals, strict=True)]
        pairs = [
            replace(case, answer=both[case.place if len(both) > 1 else 0], source_answer=None)
            for case in cases
        ]
        return super().judge_call(pairs, both)


def _refused(expected: str, got: str, remedy: str = "leave them out") -> Exception:
    return unexpected("targets 'drops'", expected, got, remedy)
