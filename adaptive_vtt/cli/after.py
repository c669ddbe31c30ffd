"""``avtt audit --after DIR``: an audit that goes by what earlier ones found: one of an earlier
version of the model, or those of three or more other models, a cohort."""

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..audit import Audit
from ..audit.forecast import forecasts
from ..certify.tracks import tracks
from ..cohort import MIN_MODELS
from ..config import Spec
from ..engine.audit_key import fresh_seed, full_name
from ..errors import InputError
from ..journal import read_journal
from ..journal.facts import CertificateFacts, Facts, read_facts
from ..journal.files import JOURNAL
from ..results.result import Result
from ..types import Floats, JsonObject
from ..utils.figures import points

ROUNDING = 1e-9
MIN_RATE = 0.01
"""The lowest rate that uniform questions are reckoned for: of 0 no formula knows the variance."""


@dataclass(frozen=True)
class Earlier:
    """The audit in a run folder; ``widest`` (T + 1,): half-width of its widest interval after 0, 1
    ... draws, None where it certified nothing."""

    folder: Path
    facts: Facts
    widest: Floats | None

    @classmethod
    def of(cls, folder: Path) -> "Earlier":
        """Raises JournalError where no audit was begun there."""
        with closing(read_journal(folder / JOURNAL)) as journal:
            facts = read_facts(journal.facts())
            if facts.certificate is None:
                return cls(folder, facts, None)
            found = tracks(facts.certificate, journal.draws(proposals=False), journal.calls())
        return cls(folder, facts, np.max([track.half_width for track in found], axis=0))

    def compared(self, audit: Audit, result: Result) -> str:
        """How many calls it took this time and last time, and uniform questions, for the same
        half-width."""
        certificate = audit.certify.describe(audit.belief.certifier)
        if certificate is None or self.widest is None or not _same(certificate, self.facts):
            return (
                f"{self.folder} certified other targets, or otherwise, so its calls are not "
                "compared with these"
            )
        width, wanted = float(result.targets["half_width"].max()), audit.certify.half_width
        uniform = ""
        if wanted is not None and width <= wanted:
            width = wanted
            uniform = (
                f"; uniform questions would take about {_uniform(audit, result):,}, by the formula "
                "of 'avtt plan'"
            )
        draws = audit.belief.certifying.sequences.moves
        model = full_name(self.facts.settings.model, self.facts.model_version)
        reached = np.flatnonzero(self.widest <= width + ROUNDING)
        took = f"{reached[0]:,}" if len(reached) else f"more than its {len(self.widest) - 1:,}"
        return (
            f"to {points(width)} this audit took {draws:,} calls, {self.folder} (of "
            f"{model}) took {took}{uniform}. What its answers saved cannot be told "
            "from one run, as models and luck differ"
        )


@dataclass(frozen=True)
class Before:
    """The audits of ``--after``: one of an earlier version of the model, or those of a cohort."""

    all: tuple[Earlier, ...]

    @classmethod
    def of(cls, folders: Sequence[Path]) -> "Before":
        """Raises InputError for two."""
        if 1 < len(folders) < MIN_MODELS:
            raise InputError(
                f"--after: expected one run of an earlier version, or runs of {MIN_MODELS} or more "
                f"other models, got {len(folders)}; of two nobody can tell how far models differ"
            )
        return cls(tuple(map(Earlier.of, folders)))

    @property
    def changes(self) -> JsonObject:
        """What of a spec they change: one is its prior journal, several are its cohort."""
        if len(self.all) == 1:
            return {"certify.prior_journal": os.path.abspath(self.all[0].folder / JOURNAL)}
        return {"certify.cohort": [os.path.abspath(one.folder) for one in self.all]}

    def seeded(self, spec: Spec, given: int | None) -> Spec:
        """The spec with a seed that is none of the earlier audits'. Raises InputError where that
        was ``given`` on the command line, and for an audit that certifies nothing."""
        if not spec.certify.certifies:
            raise InputError(
                "--after: expected an audit that certifies, which predictions serve, got one that "
                "explores; give --half-width"
            )
        same = next((b for b in self.all if b.facts.settings.seed == spec.audit.seed), None)
        if same is None:
            return spec
        if given is not None:
            raise InputError(
                f"--seed: expected another one than that of {same.folder}, {given}, so that the "
                "draws are new; leave it out for a fresh one"
            )
        seeded = spec.audit.model_copy(update={"seed": fresh_seed()})
        return spec.model_copy(update={"audit": seeded})

    def tell(self, audit: Audit, result: Result) -> str:
        """How many calls it took, and uniform questions, for the same half-width."""
        if len(self.all) == 1:
            return self.all[0].compared(audit, result)
        width, draws = result.targets["half_width"].max(), audit.belief.certifying.sequences.moves
        return (
            f"to {points(float(width))} this audit took {draws:,} calls, going by {len(self.all)} "
            f"other models; uniform questions would take about {_uniform(audit, result):,} to what "
            "was asked for, by the formula of 'avtt plan'"
        )


def _same(certificate: Mapping[str, Any], facts: Facts) -> bool:
    """Whether the earlier audit certified the same targets, as surely."""
    now, then = CertificateFacts.model_validate(certificate), facts.certificate
    if then is None:
        return False
    names = ("ids", "sizes", "confidence", "guarantee", "unanswered")
    return all(getattr(now, name) == getattr(then, name) for name in names)


def _uniform(audit: Audit, result: Result) -> int:
    """Calls that uniform questions without predictions are likely to take, at the rates found."""
    rates = result.targets["estimate"].clip(MIN_RATE, 1 - MIN_RATE).tolist()
    rows, _ = forecasts(audit.belief.certifying, 1.0, audit.certify.unanswered == "both", rates)
    return max(row.likely[rate] for row, rate in zip(rows, rates, strict=True))
