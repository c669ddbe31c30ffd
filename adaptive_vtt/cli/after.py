"""``avtt audit --after DIR``: start an audit from the answers of earlier ones.

They are of an earlier version of the model, or of a cohort: three or more other models.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..audit import Audit
from ..audit.forecast import forecasts
from ..certify.tracks import tracks
from ..cohort import MIN_MODELS
from ..config import Spec
from ..engine.audit_key import fresh_seed, full_name
from ..errors import InputError
from ..journal import check_undamaged
from ..journal.facts import CertificateFacts, Facts
from ..journal.files import JOURNAL
from ..results.result import Result
from ..results.run import Run
from ..types import JsonObject
from ..utils.figures import points

ROUNDING = 1e-9
MIN_RATE = 0.01
"""The lowest rate for which calls are forecast: at 0 the formula knows no variance."""
SAME = ("ids", "sizes", "confidence", "guarantee", "unanswered")
"""Facts of a certificate in which audits agree whose calls are compared."""


@dataclass(frozen=True)
class Before:
    """Earlier audits, by run folder: one of an earlier version of the model, or a cohort."""

    folders: dict[Path, Facts]

    @classmethod
    def of(cls, folders: Sequence[Path]) -> "Before":
        """Read the audits.

        Raises:
            InputError: There are two, which show too little about how models differ.
            JournalError: A folder holds no audit, or its rows were changed.
        """
        if 1 < len(folders) < MIN_MODELS:
            raise InputError(
                f"--after: expected one run of an earlier version, or runs of {MIN_MODELS} or more "
                f"other models, got {len(folders)}, which do not show how far models differ"
            )
        earlier = {}
        for folder in folders:
            with Run.opened(folder) as run:
                check_undamaged(run.journal)
                earlier[folder] = run.facts
        return cls(earlier)

    @property
    def changes(self) -> JsonObject:
        """The fields of a spec that they set: one is its prior journal, several its cohort."""
        paths = [os.path.abspath(folder) for folder in self.folders]
        if len(paths) == 1:
            return {"certify.prior_journal": os.path.join(paths[0], JOURNAL)}
        return {"certify.cohort": paths}

    def seeded(self, spec: Spec, seed: int | None) -> Spec:
        """Return the spec with a seed that no earlier audit had.

        Args:
            spec: The spec.
            seed: The seed of the command line, or None.

        Raises:
            InputError: An earlier audit had ``seed``, or the spec certifies nothing.
        """
        if not spec.certify.certifies:
            raise InputError(
                "--after: expected an audit that certifies, which predictions serve, got one that "
                "explores; give --half-width"
            )
        taken = {facts.settings.seed: folder for folder, facts in self.folders.items()}
        if spec.audit.seed not in taken:
            return spec
        if seed is not None:
            raise InputError(
                f"--seed: expected another one than that of {taken[seed]}, {seed}, so that the "
                "draws are new; leave it out for a fresh one"
            )
        audit = spec.audit.model_copy(update={"seed": fresh_seed()})
        return spec.model_copy(update={"audit": audit})

    def summary(self, audit: Audit, result: Result) -> str:
        """Return a sentence on the calls of this audit, an earlier one, and uniform questions.

        All are to the same half-width.
        """
        width, wanted = float(result.targets["half_width"].max()), audit.certify.half_width
        reached = wanted is not None and width <= wanted
        if wanted is not None and reached:
            width = wanted
        took = f"to {points(width)} this audit took {audit.belief.certifying.sequences.moves:,}"
        rates = result.targets["estimate"].clip(MIN_RATE, 1 - MIN_RATE).tolist()
        both = audit.certify.unanswered == "both"
        rows, _ = forecasts(audit.belief.certifying, 1.0, both, rates)
        likely = max(row.likely[rate] for row, rate in zip(rows, rates, strict=True))
        uniform = f"; uniform questions would take about {likely:,}"
        formula = ", by the formula of 'avtt plan'"
        if len(self.folders) > 1:
            others = f"calls, with {len(self.folders)} other models as a cohort"
            return f"{took} {others}{uniform} to what was asked for{formula}"
        ((folder, facts),) = self.folders.items()
        before = _took(folder, facts, audit, width)
        if before is None:
            return (
                f"{folder} certified other targets, or otherwise, so its calls are not "
                "compared with these"
            )
        model = full_name(facts.settings.model, facts.model_version)
        expected = f"{uniform}{formula}" if reached else ""
        return (
            f"{took} calls, {folder} (of {model}) took {before}{expected}. One run does not show "
            "what its answers saved, as models and luck differ"
        )


def _took(folder: Path, facts: Facts, audit: Audit, width: float) -> str | None:
    """Return the number of calls that the audit in a folder took to a half-width, in words.

    None if it certified other targets, or with another confidence.
    """
    described, then = audit.certify.describe(audit.belief.certifier), facts.certificate
    if described is None or then is None:
        return None
    now = CertificateFacts.model_validate(described)
    if any(getattr(now, name) != getattr(then, name) for name in SAME):
        return None
    with Run.opened(folder) as run:
        moves = tracks(then, run.draws, run.calls)
    widest = np.max([track.half_width for track in moves], axis=0)  # after 0, 1 ... draws
    reached = np.flatnonzero(widest <= width + ROUNDING)
    return f"{reached[0]:,}" if len(reached) else f"more than its {len(widest) - 1:,}"
