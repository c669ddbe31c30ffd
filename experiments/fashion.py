"""The bundled Fashion-MNIST space: calls until every target of the demo is certified.

A real model on real images, 14 concepts per call: 2,000 images x 26 perturbations. The bundled
CNN answers everything once; then audits replay its answers. "covered" counts runs in which
every target's interval held the truth at every moment. "EfficientNet-Lite0" has its features of
source images in place of thumbnails, where the extra "embedding" is installed.
"""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adaptive_vtt import Audit
from adaptive_vtt.benchmark.runs import UNIFORM, Job, Run, certified_run
from adaptive_vtt.certify import named_targets
from adaptive_vtt.engine.census import all_answers, all_losses, means
from adaptive_vtt.spec import DEMO, Spec
from adaptive_vtt.spec.building import build_model, build_parts, build_space
from adaptive_vtt.spec.model_section import ModelSection
from adaptive_vtt.surrogates import embed
from adaptive_vtt.surrogates.embedding import installed
from adaptive_vtt.types import Floats
from adaptive_vtt.utils.files import write_text


@dataclass(frozen=True)
class Setting:
    """One way to audit; ``strategy`` as ``avtt compare`` names them."""

    name: str
    strategy: str
    surrogate: bool = False
    embedded: bool = False


SETTINGS = (
    Setting("uniform", UNIFORM),
    Setting("stratified", "stratified"),
    Setting("adaptive, no surrogate", "certify"),
    Setting("adaptive", "certify", surrogate=True),
    Setting("adaptive, EfficientNet-Lite0", "certify", surrogate=True, embedded=True),
)


def recorded(answers: Path) -> tuple[Spec, tuple[float, ...]]:
    """The demo with its model's answers kept in the file ``answers``, and the true means."""
    here = Path()
    space = build_space(DEMO, here)
    model = build_model(DEMO, here, space.dataset)
    write_text(answers, all_answers(space, model).to_csv(index=False))
    section = ModelSection.model_validate({"kind": "recorded", "answers": str(answers)})
    spec = changed(DEMO, audit={"budget": None}).model_copy(update={"model": section})
    questions, losses = all_losses(space, build_model(spec, here, space.dataset))
    truth = means(
        space, named_targets(space, DEMO.certify.targets, DEMO.certify.where), questions, losses
    )
    return spec, tuple(truth.tolist())


def table(
    spec: Spec,
    truth: tuple[float, ...],
    widths: Sequence[float],
    seeds: int,
    settings: Sequence[Setting] = SETTINGS,
) -> pd.DataFrame:
    """One row per half-width and setting: mean calls, ratio to the first, coverage, time."""
    rows: list[dict[str, Any]] = []
    for width in widths:
        for setting in settings:
            certify = {"half_width": width, "surrogate": setting.surrogate}
            chosen = changed(spec, certify=certify)
            features = embedded() if setting.embedded else None
            begin = partial(begun, chosen, features)
            jobs = [Job(begin, setting.strategy, s, truth=truth) for s in range(seeds)]
            rows.append(_row(setting.name, width, [certified_run(job) for job in jobs], rows))
            print(rows[-1], flush=True)
    return pd.DataFrame(rows)


def begun(spec: Spec, features: Floats | None, **options: Any) -> Audit:
    """The spec's audit, with ``features`` (n, d) of the source images where they are given."""
    space = build_space(spec, Path())
    if features is not None:
        space.dataset.features = features
    space, model, chosen = build_parts(spec, Path(), space)
    return Audit(space, model, **{**chosen, **options})


@cache
def embedded() -> Floats:
    """EfficientNet-Lite0's features of the bundled images."""
    return embed(build_space(DEMO, Path()).dataset, device="cpu")


def _row(name: str, width: float, runs: list[Run], above: list[dict[str, Any]]) -> dict[str, Any]:
    calls = float(np.mean([run["calls"] for run in runs]))
    base = [r["calls"] for r in above if r["half-width"] == width] or [calls]  # uniform is first
    return {
        "how": name,
        "half-width": width,
        "calls": round(calls, 1),
        "ratio": round(calls / base[0], 3),
        "covered": f"{sum(not run['missed'] for run in runs)}/{len(runs)}",
        "certified": f"{sum(all(run['certified']) for run in runs)}/{len(runs)}",
        "ms per draw": round(1000 * float(np.mean([run["seconds"] for run in runs])), 1),
    }


def changed(spec: Spec, **changes: dict[str, Any]) -> Spec:
    """The spec with fields of its sections changed."""
    sections = {name: getattr(spec, name).model_copy(update=c) for name, c in changes.items()}
    return spec.model_copy(update=sections)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("bench"))
    parser.add_argument("--half-widths", type=float, nargs="+", default=(0.1, 0.08, 0.06))
    parser.add_argument("--seeds", type=int, default=5)
    names = [setting.name for setting in SETTINGS]
    parser.add_argument("--only", choices=names, nargs="+", default=names, help="ways to audit")
    parser.add_argument("--quick", action="store_true", help="one half-width, two seeds")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        spec, truth = recorded(Path(folder) / "answers.csv")
        widths, seeds = ((0.1,), 2) if options.quick else (options.half_widths, options.seeds)
        able = [setting for setting in SETTINGS if installed() or not setting.embedded]
        settings = [setting for setting in able if setting.name in options.only]
        frame = table(spec, truth, widths, seeds, settings)
    print(frame.to_string(index=False))
    write_text(options.out / "fashion.csv", frame.to_csv(index=False))


if __name__ == "__main__":
    main()
