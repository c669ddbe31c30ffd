"""Measure certificates: questions to a half-width, coverage and RMSE, compared with uniform draws.

    python -m adaptive_vtt.experiments.engine.certificates --only severity --seeds 12

Data sets are digits-severity and digits-proxy (real images and models) and concept sides (the label
statistics of ISIC 2018 task 2, simulated answers). A run takes seconds. It asks one question per
call through the engine's Selector, without a journal. "covered" counts runs in which every target's
interval held the truth at every moment.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import torch

from adaptive_vtt.certify import Certifier, named_targets
from adaptive_vtt.certify.rules import Rules
from adaptive_vtt.engine.belief import Belief, Observation
from adaptive_vtt.engine.selector import Selector
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.strategies import get
from adaptive_vtt.surrogates import Posterior, QuestionGP
from adaptive_vtt.surrogates.question_gp import Questions
from adaptive_vtt.types import Floats

from ..program import Row, in_processes, options, save_table
from ..vtt.label_sets import isic
from . import digits
from .self_taught import taught_losses

MARKS = (100, 200, 400)
"""Numbers of draws after which estimates are compared with the truth, without a half-width."""
TURNS_AT = 60
"""Number of answers after which a turncoat proxy, right until then, is inverted."""
UNIFORM_EXPLORATION = 1e-9
"""Exploration of uniform audits. It must be above 0, and this value changes no draw."""


@dataclass(frozen=True)
class Setting:
    """One way to audit.

    ``prediction`` is one of

    - "none": no predictions;
    - "gp": the question GP;
    - "losses" or "margins": the GP learns from these alone, without follow-ups;
    - "lies": the GP's margins are noise;
    - "proxies": the GP has the losses of cheaper models;
    - "self-taught": the GP has those of nets that are trained on the sources' labels;
    - "regression": the same nets, without the GP's process;
    - "shuffled": the features are those of other samples and follow-ups;
    - "adversarial": a proxy that is the opposite of the truth, which the GP soon learns;
    - "turncoat": a proxy that is right at first and inverted later (``TURNS_AT``).
    """

    name: str
    strategy: str = "certify"
    prediction: str = "none"
    exploration: float = 0.2
    candidates: int = 1024
    unanswered: float = 0.0
    batch: int = 1


UNIFORM = Setting("uniform", "random", exploration=UNIFORM_EXPLORATION)
ADAPTIVE = Setting("adaptive", prediction="gp")
TAUGHT = Setting("adaptive + self-taught", prediction="self-taught")
LOSSES = Setting("adaptive, losses alone", prediction="losses")


@dataclass(frozen=True)
class Task:
    """One audit: its benchmark, setting, half-width (0: none) and seed."""

    bench: str
    setting: Setting
    half_width: float
    seed: int
    most: int = 60_000
    marks: tuple[int, ...] = ()
    device: str = "cpu"


@dataclass(frozen=True)
class Material:
    """A space, the loss of each of its questions, the targets, and the bench of its predictions."""

    space: QuestionSpace
    losses: Floats
    targets: Sequence[str]
    bench: Any = None


def run(task: Task) -> Row:
    """Audit until all targets are certified, or ``most`` draws are made.

    Returns:
        Questions, those needed (the rest filled the last batch), whether every interval always
        held, whether all targets were certified, ms per draw, and squared errors at the marks.
    """
    material, setting = _material(task.bench, task.seed), task.setting
    selector = selector_of(
        material.space,
        material.targets,
        Rules(task.half_width or 0.01, 0.05),
        setting.strategy,
        task.seed,
        losses=None if setting.prediction == "none" else _gp(task, material),
        exploration=setting.exploration,
        candidates=setting.candidates,
    )
    certifier = selector.belief.certifying
    truth = _truth(material, certifier)
    rng = np.random.default_rng([task.seed, 77])
    start, held, errors, open_ = time.perf_counter(), True, {}, 0
    waiting: list[Observation] = []
    while selector.draws < task.most and not certifier.certified.all():
        draw = selector.draw(task.setting.batch - len(waiting))
        if draw is None:
            break
        question = np.array([draw.question])
        waiting.append(_answer(material, draw.question, task.setting, rng))
        selector.take(question, draw.bet)
        if len(waiting) < task.setting.batch:
            continue
        for learnt in waiting:
            open_ += not certifier.certified.all()
            selector.learn([learnt])
            sequences = certifier.sequences
            held &= bool(((sequences.lower <= truth) & (truth <= sequences.upper)).all())
        waiting = []
        if selector.draws in task.marks:
            error = float(certifier.sequences.estimate[0] - truth[0])
            errors[f"RMSE at {selector.draws}"] = error**2
    return {
        "questions": selector.draws,
        "needed": open_,
        "covered": held,
        "certified": bool(certifier.certified.all()),
        "ms per draw": 1000 * (time.perf_counter() - start) / selector.draws,
        **errors,
    }


def table(
    bench: str,
    settings: Sequence[Setting],
    widths: Sequence[float],
    seeds: int,
    *,
    workers: int = 2,
    executor: str = "processes",
    device: str = "cpu",
) -> pd.DataFrame:
    """Return a row per setting and half-width: mean draws, ratio to uniform, coverage, RMSE."""
    keys = [(s, w) for w in widths for s in settings]
    tasks = [
        Task(bench, s, w, seed, device=device)
        if w
        else Task(bench, s, w, seed, MARKS[-1], MARKS, device)
        for s, w in keys
        for seed in range(seeds)
    ]
    runs = pd.DataFrame(in_processes(run, tasks, workers, executor))
    runs[["setting", "half-width"]] = [(t.setting.name, t.half_width) for t in tasks]
    groups = runs.groupby(["setting", "half-width"], sort=False)
    frame = groups.mean().drop(columns="certified").reset_index()
    frame["covered"] = [f"{held}/{seeds}" for held in groups["covered"].sum()]
    errors = frame.columns[frame.columns.str.startswith("RMSE")]
    frame[errors] = frame[errors].pow(0.5).round(4)
    frame["ms per draw"] = frame["ms per draw"].round(1)
    frame.insert(0, "benchmark", bench)
    base = frame[frame["setting"] == "uniform"].set_index("half-width")["questions"]
    if len(base):
        frame.insert(4, "ratio", (frame["questions"] / frame["half-width"].map(base)).round(3))
    return frame


def selector_of(
    space: QuestionSpace,
    targets: Sequence[str],
    rules: Rules,
    strategy: str,
    seed: int | str,
    *,
    losses: Any = None,
    exploration: float = 0.2,
    candidates: int = 1024,
) -> Selector:
    """Return the selector of an audit with one question per call, predicted by ``losses``."""
    certifier = Certifier(space, named_targets(space, targets), answers="one", rules=rules)
    return Selector(
        space,
        get(strategy),
        seed=seed,
        exploration=exploration,
        candidates=candidates,
        answers="one",
        belief=Belief(space, seed=seed, losses=losses, certifier=certifier),
    )


class RegressionMean(QuestionGP):
    """The question GP without its process: it predicts by its logistic regression alone."""

    def posterior(self, candidates: Questions, *, latent: bool = False) -> Posterior:
        asked = self._judged_of(self.prepare(candidates))
        mean = self.mean.expected(asked.variant, asked.side, asked.features)
        return Posterior(mean, mean * (1 - mean))


def _gp(task: Task, material: Material) -> QuestionGP:
    """Return the surrogate of a task's setting."""
    bench, prediction = material.bench, task.setting.prediction
    make = RegressionMean if prediction == "regression" else QuestionGP
    if bench is None:  # there are neither images nor relations, only concepts and sides
        return make([0], [0], len(material.space.concepts), shared=False, device=task.device)
    shuffled = np.random.default_rng([task.seed, 5]).permutation(len(bench.features))
    inputs = bench.inputs(shuffled if prediction == "shuffled" else None)
    if prediction in ("losses", "margins"):
        inputs = {"features": inputs["features"]}
    losses = torch.from_numpy(bench.losses)

    def taught(sample: Any, variant: Any, concept: Any, truth: Any) -> Any:
        return torch.from_numpy(_taught(task.bench))[sample, variant][:, None]

    def turncoat(sample: Any, variant: Any, concept: Any, truth: Any) -> Any:
        actual = losses[sample, variant][:, None]
        return actual if len(gp) < TURNS_AT else 1 - actual

    def inverted(sample: Any, variant: Any, concept: Any, truth: Any) -> Any:
        return 1 - losses[sample, variant][:, None]

    kinds: dict[str, Callable[..., Any]] = {
        "proxies": bench.proxy_losses,
        "self-taught": taught,
        "regression": taught,
        "adversarial": inverted,
        "turncoat": turncoat,
    }
    gp = bench.gp(make, proxies=kinds.get(prediction), device=task.device, **inputs)
    return gp


def _answer(
    material: Material, question: int, setting: Setting, rng: np.random.Generator
) -> Observation:
    """Return the question's loss; some questions are unanswered and count both ways."""
    loss = float(material.losses[question])
    truth = int(material.space.truth([question])[0])
    if setting.unanswered and rng.random() < setting.unanswered:
        return Observation(question, truth, 1.0, low=0.0, high=1.0)
    margin = None
    if material.bench is not None and setting.prediction != "losses":
        margin = float(material.bench.margins.flat[question])
    if setting.prediction == "lies":
        margin = rng.normal()
    return Observation(question, truth, loss, margin=margin)


def _truth(material: Material, certifier: Certifier) -> Floats:
    """Return the true mean loss of each target, (K,)."""
    questions = material.space.nth(np.arange(material.space.size))
    inside = certifier.members(questions)
    return (inside @ material.losses[questions]) / inside.sum(axis=1)


def _material(bench: str, seed: int) -> Material:
    if bench.startswith("sides"):
        return _sides(float(bench.split()[1]), seed)
    digit_bench = _digits(bench)
    losses = np.asarray(digit_bench.losses, float).ravel()
    return Material(digit_bench.space(), losses, ["overall"], digit_bench)


def _digits(bench: str) -> digits.Bench:
    return digits.severity_bench() if bench == "digits-severity" else digits.proxy_bench()


@lru_cache(maxsize=2)
def _taught(bench: str) -> Floats:
    """Return the losses that the self-taught proxy expects, samples x variants."""
    digit_bench = _digits(bench)
    return taught_losses(digit_bench, digit_bench.digits)


def _sides(accuracy: float, seed: int) -> Material:
    """Return 3,694 images with the label statistics of ISIC, and a model of this ``accuracy``."""
    space = QuestionSpace(isic(samples=3694))
    rng = np.random.default_rng([seed, 3])
    losses = (rng.random(space.total) >= accuracy).astype(float)
    return Material(space, losses, ["concepts"])


BATCHED = Setting("batches of 16", batch=16)
PLAIN = Setting("adaptive, no surrogate")
PROXIES = Setting("adaptive + proxies", prediction="proxies")
TAUGHT_16, *LARGER = (
    replace(TAUGHT, name=f"the same, batches of {n}", batch=n) for n in (16, 64, 256)
)
UNANSWERED = Setting("unanswered 5 %", unanswered=0.05, exploration=0.2)
SILENT = Setting("5 % unanswered both ways", prediction="proxies", unanswered=0.05)
SHUFFLED = Setting("shuffled features", prediction="shuffled")
LIES = Setting("margins that are noise", prediction="lies")
ADVERSARIAL = Setting("adversarial proxy", prediction="adversarial")
TURNCOAT = Setting("proxy that turns", prediction="turncoat")

FEW, SOME, MANY = 20, 60, 300
"""Numbers of seeds."""
SUITES: dict[str, tuple[str, Sequence[Setting], Sequence[float], int]] = {
    "sides-0.7": ("sides 0.7", (UNIFORM, PLAIN), (0.1, 0.05), FEW // 2),
    "sides-0.9": ("sides 0.9", (UNIFORM, PLAIN), (0.1, 0.05), FEW // 2),
    "sides-coverage": ("sides 0.9", (PLAIN, UNANSWERED, BATCHED), (0.1,), MANY),
    "severity": ("digits-severity", (UNIFORM, TAUGHT, ADAPTIVE, LOSSES), (0.05, 0.04, 0.03), FEW),
    "severity-shuffled": ("digits-severity", (UNIFORM, LOSSES, SHUFFLED, LIES), (0.05,), FEW),
    "severity-batches": ("digits-severity", (TAUGHT, TAUGHT_16, *LARGER), (0.05,), FEW),
    "severity-coverage": ("digits-severity", (TAUGHT, TAUGHT_16), (0.05,), MANY),
    "proxy": ("digits-proxy", (UNIFORM, ADAPTIVE, PROXIES), (0.05,), SOME),
    "proxy-rmse": ("digits-proxy", (UNIFORM, PROXIES), (0.0,), SOME),
    "unanswered-coverage": ("digits-proxy", (SILENT,), (0.08,), MANY),
    "proxy-coverage": ("digits-proxy", (UNIFORM, PROXIES, ADVERSARIAL, TURNCOAT), (0.05,), MANY),
}
"""Name of a table -> benchmark, settings, half-widths (0: errors at MARKS), and seeds."""


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(
        __doc__,
        arguments,
        quick={"only": ["sides-0.9", "severity", "proxy"], "seeds": 1},
        only=SUITES,
        seeds=int,
        workers=2,
        executor="processes",
        device="cpu",
    )
    machine = {name: getattr(chosen, name) for name in ("workers", "executor", "device")}
    for name in chosen.only:
        bench, settings, widths, seeds = SUITES[name]
        if chosen.quick:
            widths = widths[:1]
        frame = table(bench, settings, widths, chosen.seeds or seeds, **machine)
        save_table(frame, chosen.out / f"certificates-{name}.csv")


if __name__ == "__main__":
    main()
