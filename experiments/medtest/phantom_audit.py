"""Count the calls that certify the error-finding rates of the phantom's U-Net, in some 35 minutes.

    python -m adaptive_vtt.experiments.medtest.phantom_audit

The audits are about MedTest's nine relations (thesis LYU2308, CUHK 2024) at five severities, on
frames of the endoscopy phantom. An error is a Dice that drops by more than a quarter. The U-Net
answers every question once, and audits replay its scores. A source image is asked about when the
first of its follow-ups is drawn, which counts as a call.

Frames whose source scores 0 are kept. Their follow-ups are excluded questions, which widen every
interval since no audit knows them beforehand. With ``--judged``, all sources are asked about
beforehand, which counts, and these frames are left out, as in the thesis. "covered" counts runs in
which every interval held the truth at every moment.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.audit.everything import all_answers, all_losses, means
from adaptive_vtt.benchmark.runs import BASELINES
from adaptive_vtt.certify import named_targets
from adaptive_vtt.datasets import from_table
from adaptive_vtt.datasets.base import Dataset
from adaptive_vtt.experiments.medtest.phantom_unet import frames, predict
from adaptive_vtt.models import PythonModel, Recorded
from adaptive_vtt.oracles import MaskDrop
from adaptive_vtt.relations import resolve
from adaptive_vtt.utils.files import write_text

from ..engine.digits import RecordedRelation
from ..program import Row, Watch, options, save_table, show

TARGETS = ("relations",)
THRESHOLD = 0.25
CANDIDATES = 1024
"""Number of candidates of a draw, in every setting."""
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "uniform": BASELINES["uniform"],
    "stratified": BASELINES["stratified"],
    "adaptive, no surrogate": {"surrogate": False},
    "adaptive": {},
}
"""Name -> options of an audit; uniform comes first, as ratios are to its calls."""


@dataclass(frozen=True)
class Material:
    """Recorded scores of a model.

    Attributes:
        space: The space of the audits.
        model: The model, which answers from the records.
        efr: (K,) the true error-finding rates.
        left_out: Number of frames that are left out.
    """

    space: QuestionSpace
    model: Recorded
    efr: npt.NDArray[np.float64]
    left_out: int


def answers_of(dataset: Dataset, severities: Sequence[int]) -> pd.DataFrame:
    """Return the Dice of every source and follow-up of ``dataset``, as `Recorded` reads them."""
    space = QuestionSpace(dataset, ["medtest"], severities=severities, oracle=_oracle())
    return all_answers(space, PythonModel(predict))


def replayed(
    dataset: Dataset, severities: Sequence[int], answers: pd.DataFrame, *, judged: bool = False
) -> Material:
    """Return the space with its questions answered from the table ``answers``.

    With ``judged``, frames whose source scores 0 are left out. This changes the numbers of
    questions, and with them what is rendered, so source images stand in for follow-ups, and no
    masks are known.
    """
    if not judged:
        space = QuestionSpace(dataset, ["medtest"], severities=severities, oracle=_oracle())
        return _material(space, answers, 0)
    zero = set(excluded(answers))
    samples = [dataset.sample(k) for k in range(len(dataset)) if dataset.sample_id(k) not in zero]
    labels = pd.DataFrame({"polyp": 1}, index=[sample.id for sample in samples])
    kept = from_table([sample.image for sample in samples], labels, name=dataset.name)
    relations = [RecordedRelation(relation.name, severities) for relation in resolve(["medtest"])]
    return _material(QuestionSpace(kept, relations, oracle=_oracle()), answers, len(zero))


def _material(space: QuestionSpace, answers: pd.DataFrame, left_out: int) -> Material:
    model = Recorded(answers)
    efr = means(space, named_targets(space, TARGETS), *all_losses(space, model))
    return Material(space, model, efr, left_out)


def excluded(answers: pd.DataFrame) -> list[str]:
    """Return the frames whose source scores 0."""
    zero = (answers["relation"] == "identity") & (answers["polyp"] == 0)
    return answers.loc[zero, "sample"].tolist()


def run(material: Material, how: Mapping[str, Any], half_width: float, seed: int) -> Row:
    """Run one audit.

    Returns:
        Its calls, those about sources, whether an interval ever missed the truth, whether all
        targets were certified, and its seconds.
    """
    watch = Watch(material.efr)
    with Audit(
        material.space,
        material.model,
        half_width=half_width,
        targets=TARGETS,
        seed=seed,
        candidates=CANDIDATES,
        **how,
    ) as audit:
        result = audit.run(watch)
        sources, seconds = len(audit.journal.sources()), audit.state().elapsed
    return {
        "calls": result.calls + material.left_out,
        "sources": sources + material.left_out,
        "missed": not watch.held,
        "certified": bool(result.targets["certified"].all()),
        "seconds": seconds,
    }


def table(material: Material, half_widths: Sequence[float], seeds: int) -> pd.DataFrame:
    """Return mean calls, their ratio to uniform, coverage and time, by half-width and setting."""
    rows: list[Row] = []
    for width in half_widths:
        base = 0.0
        for name, how in SETTINGS.items():
            runs = pd.DataFrame([run(material, how, width, seed) for seed in range(seeds)])
            calls, sources = float(runs["calls"].mean()), float(runs["sources"].mean())
            base = base or calls
            rows.append(
                {
                    "how": name,
                    "half-width": width,
                    "calls": round(calls, 1),
                    "follow-ups": round(calls - sources, 1),
                    "sources": round(sources, 1),
                    "ratio": round(calls / base, 3),
                    "covered": f"{(~runs['missed']).sum()}/{seeds}",
                    "certified": f"{runs['certified'].sum()}/{seeds}",
                    "ms per call": round(1000 * float(runs["seconds"].mean()) / calls, 1),
                }
            )
            show(rows[-1])
    return pd.DataFrame(rows)


def _oracle() -> MaskDrop:
    return MaskDrop("dice", (THRESHOLD,))


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(
        __doc__,
        arguments,
        quick={"frames": 40, "severities": [1, 5], "half_widths": [0.2], "seeds": 1},
        answers=Path,
        frames=400,
        severities=[1, 2, 3, 4, 5],
        half_widths=[0.05],
        seeds=3,
        judged=False,
    )
    dataset = frames(chosen.frames, size=96, seed=1000)
    if chosen.answers is None:
        answers = answers_of(dataset, chosen.severities)
        write_text(chosen.out / "phantom-answers.csv", answers.to_csv(index=False))
    else:
        answers = pd.read_csv(chosen.answers)
    material = replayed(dataset, chosen.severities, answers, judged=chosen.judged)
    names = [target.name for target in named_targets(material.space, TARGETS)]
    zero = f"{len(excluded(answers))} score 0, {material.left_out} of them left out"
    show(f"{material.space.size} follow-ups; of {chosen.frames} frames {zero}")
    show(pd.DataFrame({"error finding rate": material.efr}, names).round(4), index=True)
    name = "phantom-audit-judged" if chosen.judged else "phantom-audit"
    save_table(table(material, chosen.half_widths, chosen.seeds), chosen.out / f"{name}.csv")


if __name__ == "__main__":
    main()
