"""What each part of the default audit is worth: calls until certified with one part taken out.

Every run is one audit until all targets are certified, or until as many calls as the benchmark
allows. Ratios are to calls that are drawn at random and predicted by the same question GP, nets
included, and to plain uniform calls without predictions. Benchmarks:

- ``demo``: what ``avtt audit --demo`` certifies, 16 targets to +-.08; ``relations``: its seven
  relations alone; ``fashion``: its 16 targets to +-.4. Recorded answers of the bundled model.
- ``digits``: digits-severity, one target to +-.05; ``sides``: ten sides of ISIC's concepts to
  +-.1, a model that is right 90 % of the time (``certificates``). One question per call.
- ``bccd``: presence of cells in photographs, 19 targets to +-.1 (``bccd``), where ``--data`` says
  where they are.

Each run is a line of OUT/ablation.csv as soon as it has ended, and is not made again while it is
there: delete the file after a change of the engine. Prints and writes a table per benchmark.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.audit.everything import all_answers, all_losses, means
from adaptive_vtt.benchmark.runs import BASELINES, UNIFORM, Job, certified_run
from adaptive_vtt.certify import named_targets
from adaptive_vtt.config import DEMO
from adaptive_vtt.config.building import build_model, build_space
from adaptive_vtt.models import Recorded
from adaptive_vtt.strategies import PAPER
from adaptive_vtt.types import Floats, Indices
from adaptive_vtt.utils.files import write_text

from ..medmnistc.bccd import Nets, Replayed, Sizes, benches
from ..program import options, show, told
from . import certificates

RANDOM = "prediction-powered"
REGRESSION = "adaptive_vtt.experiments.engine.certificates:RegressionMean"
PREDICTIONS: dict[str, dict[str, Any]] = {
    "self-taught": {},
    "gp": {"self_taught": False},
    "regression": {"surrogate": REGRESSION},
    "none": {"surrogate": False},
}
"""Options of an audit, by what ``certificates.Setting`` calls its prediction."""
COLUMNS = ("benchmark", "way", "seed", "calls", "certified", "held", "seconds")


@dataclass(frozen=True)
class Way:
    """One way to audit; ``strategy`` as ``avtt compare`` names them."""

    name: str
    strategy: str = "certify"
    prediction: str = "self-taught"


WAYS = (
    Way("certify"),
    Way("without the process: regression mean only", prediction="regression"),
    Way("without self-taught nets", prediction="gp"),
    Way("without predictions", prediction="none"),
    Way("random, same predictions", RANDOM),
    Way("uniform, no predictions", UNIFORM, "none"),
    Way("the paper's strategy (d), same predictions", PAPER),
    Way("NIPV, same predictions", "nipv"),
    Way("BALD, same predictions", "bald"),
)
MEASURES = "random, same predictions", "uniform, no predictions"
"""What calls are compared with: ways, in this order."""

Found = tuple[int, bool, bool]
"""Calls; whether all targets were certified; whether every interval held at every moment."""
Run = Callable[[Way, int], Found]


def drawn(bench: str, half_width: float, most: int, way: Way, seed: int) -> Found:
    """One run of a benchmark of ``certificates``."""
    options = BASELINES.get(way.strategy, {"strategy": way.strategy})
    exploration = options.get("exploration", certificates.Setting.exploration)
    setting = certificates.Setting(way.name, options["strategy"], way.prediction, exploration)
    found = certificates.run(certificates.Task(bench, setting, half_width, seed, most))
    return found["questions"], found["certified"], found["covered"]


def audited(begin: Callable[..., Audit], truth: Sequence[float], way: Way, seed: int) -> Found:
    """One audit that ``begin`` begins."""
    job = Job(partial(begin, **PREDICTIONS[way.prediction]), way.strategy, seed, truth=tuple(truth))
    run = certified_run(job)
    return run["calls"], all(run["certified"]), not run["missed"]


def demo(half_width: float, targets: Sequence[str], most: int, *, out: Path) -> Run:
    """Audits of the bundled model, its answers replayed."""
    space, answers, losses = demo_answers(out)
    truth = means(space, named_targets(space, targets), *losses)
    return replayed(Replayed(space, answers, tuple(targets), truth), half_width, most)


@cache
def demo_answers(out: Path) -> tuple[QuestionSpace, pd.DataFrame, tuple[Indices, Floats]]:
    """The demo's space, what its model says of every image, and its questions with their losses.

    The answers are kept in ``out``: 52,000 images take minutes to make.
    """
    space, file = build_space(DEMO, Path()), out / "demo-answers.csv"
    if not file.exists():
        answers = all_answers(space, build_model(DEMO, Path(), space.dataset))
        write_text(file, answers.to_csv(index=False))
    answers = pd.read_csv(file)
    return space, answers, all_losses(space, Recorded(answers))


def replayed(bench: Replayed, half_width: float, most: int) -> Run:
    """Audits that replay the bench's answers."""
    return partial(audited, partial(bench.begin, half_width, budget=most), bench.truth.tolist())


def photographs(folder: Path, sizes: Sizes, most: int) -> Run:
    """Audits of the net that says what tiles of BCCD's photographs show."""
    bench = benches(Nets.of(folder, sizes, seed=0), sizes)["cells present"]
    return replayed(bench, sizes.half_width, most)


def benchmarks(out: Path, data: Path | None, sizes: Sizes) -> dict[str, Callable[[], Run]]:
    """By name, made when it is their turn: what makes one run."""
    found: dict[str, Callable[[], Run]] = {
        "demo": partial(demo, 0.08, DEMO.certify.targets, 3000, out=out),
        "relations": partial(demo, 0.08, ["relations"], 3000, out=out),
        "digits": lambda: partial(drawn, "digits-severity", 0.05, 2000),
        "fashion": partial(demo, 0.4, DEMO.certify.targets, 3000, out=out),
        "sides": lambda: partial(drawn, "sides 0.9", 0.1, 10_000),
    }
    if data is not None:
        found["bccd"] = partial(photographs, data, sizes, 4000)
    return found


def measure(
    file: Path, name: str, make: Callable[[], Run], ways: Sequence[Way], seeds: int
) -> None:
    """Makes the runs that are not in the file yet, all ways of a seed before the next seed."""
    known = pd.read_csv(file) if file.exists() else pd.DataFrame(columns=COLUMNS)
    there = {*known[known["benchmark"] == name][["way", "seed"]].itertuples(index=False, name=None)}
    tasks = [(way, s) for s in range(seeds) for way in ways if (way.name, s) not in there]
    if not tasks:
        return
    run = make()
    for way, seed in tasks:
        start = time.perf_counter()
        row = (name, way.name, seed, *run(way, seed), round(time.perf_counter() - start, 1))
        known.loc[len(known)] = row
        write_text(file, known.to_csv(index=False))
        show(", ".join(map(str, row)))


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per way of one benchmark: seeds, mean calls, ratios to both measures, held."""
    by_way = {way.name: runs[runs["way"] == way.name] for way in WAYS}
    rows = []
    for way, mine in by_way.items():
        if not len(mine):
            continue
        row = {"way": way, "seeds": len(mine), "calls": _mean(mine)}
        for measure in MEASURES:
            row[f"to {measure.partition(',')[0]}"] = _ratio(mine, by_way[measure])
        rows.append(row | {"always held": f"{mine['held'].sum()} of {len(mine)}"})
    return pd.DataFrame(rows)


def _mean(runs: pd.DataFrame) -> str:
    """Calls; "over" where some run was stopped before all was certified."""
    over = "" if runs["certified"].all() else "over "
    return f"{over}{runs['calls'].mean():,.0f}"


def _ratio(runs: pd.DataFrame, others: pd.DataFrame) -> str:
    """Of mean calls, over the seeds that both have; "-" where the others were not certified."""
    seeds = set(runs["seed"]) & set(others["seed"])
    mine, theirs = (each[each["seed"].isin(seeds)] for each in (runs, others))
    if not seeds or not theirs["certified"].all():
        return "-"
    over = "" if mine["certified"].all() else "over "
    return f"{over}{mine['calls'].mean() / theirs['calls'].mean():.2f}"


def main(arguments: Sequence[str] | None = None) -> None:
    known = benchmarks(Path(), Path(), Sizes())
    ways = {way.name: way for way in WAYS}
    fast = [name for name, way in ways.items() if way.strategy not in ("nipv", "bald")]
    quick = {"only": ["digits"], "seeds": 1, "ways": fast}
    chosen = options(__doc__, arguments, quick=quick, data=Path, only=known, ways=ways, seeds=3)
    file = chosen.out / "ablation.csv"
    for name, make in benchmarks(chosen.out, chosen.data, Sizes()).items():
        if name in chosen.only:
            measure(file, name, make, [ways[way] for way in chosen.ways], chosen.seeds)
    for benchmark, runs in pd.read_csv(file).groupby("benchmark", sort=False):
        told(summary(runs), chosen.out / f"ablation-{benchmark}.csv")


if __name__ == "__main__":
    main()
