"""Count calls until certification with one part of the default audit removed at a time.

    python -m adaptive_vtt.experiments.engine.ablation --only digits --seeds 18

Every run is one audit until all targets are certified, or until the benchmark's limit of calls
("over"). It takes from seconds (digits) to some minutes (demo). Ratios are to random draws with the
same predictions (question GP and nets), and to uniform draws without predictions. Benchmarks:

- ``demo``: the 16 targets of ``avtt audit --demo`` to +-.08; ``relations``: its seven relations
  alone; ``fashion``: its 16 targets to +-.4. Answers of the bundled model are recorded.
- ``digits``: digits-severity, one target to +-.05; ``sides``: ten sides of ISIC's concepts to
  +-.1, for a model that is right 90 % of the time (``certificates``). One question per call.
- ``bccd``: presence of cells in photographs, 19 targets to +-.1 (``bccd``), with ``--data``.

Each run is written to OUT/ablation.csv when it has ended, and runs in that file are not repeated.
Delete the file after a change of the engine. Prints and writes a table per benchmark.
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
from ..program import options, save_table, show
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
    """One way to audit; the strategy has a name of ``avtt compare``."""

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
"""Ways that calls are compared with, in this order."""

Outcome = tuple[int, bool, bool]
"""Calls, whether all targets were certified, and whether every interval held at every moment."""
Run = Callable[[Way, int], Outcome]


def simulated(bench: str, half_width: float, most: int, way: Way, seed: int) -> Outcome:
    """Run one audit of a benchmark of ``certificates``."""
    options = BASELINES.get(way.strategy, {"strategy": way.strategy})
    exploration = options.get("exploration", certificates.Setting.exploration)
    setting = certificates.Setting(way.name, options["strategy"], way.prediction, exploration)
    run = certificates.run(certificates.Task(bench, setting, half_width, seed, most))
    return run["questions"], run["certified"], run["covered"]


def audited(begin: Callable[..., Audit], truth: Sequence[float], way: Way, seed: int) -> Outcome:
    """Run one audit that ``begin`` begins."""
    job = Job(partial(begin, **PREDICTIONS[way.prediction]), way.strategy, seed, truth=tuple(truth))
    run = certified_run(job)
    return run["calls"], all(run["certified"]), not run["missed"]


def demo(half_width: float, targets: Sequence[str], most: int, *, out: Path) -> Run:
    """Return the run of audits that replay the bundled model's answers."""
    space, answers, losses = demo_answers(out)
    truth = means(space, named_targets(space, targets), *losses)
    return replayed(Replayed(space, answers, tuple(targets), truth), half_width, most)


@cache
def demo_answers(out: Path) -> tuple[QuestionSpace, pd.DataFrame, tuple[Indices, Floats]]:
    """Return the demo's space, its model's answers about every image, and the losses by question.

    The answers are kept in ``out``, as 52,000 images take minutes to render.
    """
    space, file = build_space(DEMO, Path()), out / "demo-answers.csv"
    if not file.exists():
        answers = all_answers(space, build_model(DEMO, Path(), space.dataset))
        write_text(file, answers.to_csv(index=False))
    answers = pd.read_csv(file)
    return space, answers, all_losses(space, Recorded(answers))


def replayed(bench: Replayed, half_width: float, most: int) -> Run:
    """Return the run of audits that replay the bench's answers."""
    return partial(audited, partial(bench.begin, half_width, budget=most), bench.truth.tolist())


def photographs(folder: Path, sizes: Sizes, most: int) -> Run:
    """Return the run of audits of the net that classifies tiles of BCCD's photographs."""
    bench = benches(Nets.of(folder, sizes, seed=0), sizes)["cells present"]
    return replayed(bench, sizes.half_width, most)


def benchmarks(out: Path, data: Path | None, sizes: Sizes) -> dict[str, Callable[[], Run]]:
    """Return name -> a function that prepares the benchmark and returns its run."""
    makers: dict[str, Callable[[], Run]] = {
        "demo": partial(demo, 0.08, DEMO.certify.targets, 3000, out=out),
        "relations": partial(demo, 0.08, ["relations"], 3000, out=out),
        "digits": lambda: partial(simulated, "digits-severity", 0.05, 2000),
        "fashion": partial(demo, 0.4, DEMO.certify.targets, 3000, out=out),
        "sides": lambda: partial(simulated, "sides 0.9", 0.1, 10_000),
    }
    if data is not None:
        makers["bccd"] = partial(photographs, data, sizes, 4000)
    return makers


def measure(
    file: Path, name: str, make: Callable[[], Run], ways: Sequence[Way], seeds: int
) -> None:
    """Make the runs that the file lacks, all ways of a seed before the next seed."""
    known = pd.read_csv(file) if file.exists() else pd.DataFrame(columns=COLUMNS)
    own = known[known["benchmark"] == name]
    done = {*own[["way", "seed"]].itertuples(index=False, name=None)}
    tasks = [(way, s) for s in range(seeds) for way in ways if (way.name, s) not in done]
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
    """Return a row per way of one benchmark: seeds, mean calls, ratios to both measures, held."""
    by_way = {way.name: runs[runs["way"] == way.name] for way in WAYS}
    rows = []
    for way, own in by_way.items():
        if not len(own):
            continue
        row = {"way": way, "seeds": len(own), "calls": _mean(own)}
        for measure in MEASURES:
            row[f"to {measure.partition(',')[0]}"] = _ratio(own, by_way[measure])
        rows.append(row | {"always held": f"{own['held'].sum()} of {len(own)}"})
    return pd.DataFrame(rows)


def _mean(runs: pd.DataFrame) -> str:
    """Return the mean of calls, after "over" if a run was stopped before certification."""
    over = "" if runs["certified"].all() else "over "
    return f"{over}{runs['calls'].mean():,.0f}"


def _ratio(runs: pd.DataFrame, others: pd.DataFrame) -> str:
    """Return the ratio of mean calls over the seeds that both have; "-" if others were stopped."""
    runs, others = (
        runs[runs["seed"].isin(others["seed"])],
        others[others["seed"].isin(runs["seed"])],
    )
    if not len(runs) or not others["certified"].all():
        return "-"
    over = "" if runs["certified"].all() else "over "
    return f"{over}{runs['calls'].mean() / others['calls'].mean():.2f}"


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
        save_table(summary(runs), chosen.out / f"ablation-{benchmark}.csv")


if __name__ == "__main__":
    main()
