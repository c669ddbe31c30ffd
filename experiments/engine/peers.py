"""Compare errors of estimates and coverage of intervals with other packages, on the same questions.

    python -m adaptive_vtt.experiments.engine.peers --repeats 6

Every repeat audits 200 random images of digits-proxy's 250, with 1,600 questions. All methods of a
repeat have the same questions, and estimate their mean loss.

ours            certified intervals; three cheaper models' expected losses as features
uniform         the same certificate on uniform questions without predictions
normal          mean +- 1.96 sd / sqrt(n) of uniform questions, drawn without replacement
proeval         ProEval's BQPriorSampler (pip install proeval==0.1.1, and requests): Bayesian
                quadrature on the same three models, its estimate +- 1.96 integral_std
botorch ...     SingleTaskGP, argmax of an acquisition function, raw mean +- 1.96 sd / sqrt(n)
betting, ville  our sequence and ville.BettingCS (pip install ville) on the same stream of
                uniform questions, drawn with replacement, as a check of our sequence

Other packages are optional. The row of a missing one says so.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go
import torch

from adaptive_vtt.certify.rules import Rules
from adaptive_vtt.certify.sequences import Sequences, Step
from adaptive_vtt.engine.belief import Observation
from adaptive_vtt.errors import InputError
from adaptive_vtt.experiments.engine.certificates import UNIFORM_EXPLORATION, selector_of
from adaptive_vtt.experiments.engine.digits import Bench, proxy_bench
from adaptive_vtt.experiments.plots import tidy
from adaptive_vtt.experiments.program import (
    Row,
    in_processes,
    options,
    save_figure,
    save_table,
    show,
)
from adaptive_vtt.types import Floats

IMAGES = 200
MARKS = (50, 100, 200, 400)
MAX = MARKS[-1]
Z = 1.959964
HALF_WIDTH = 0.05
NOISE = 0.3
"""proeval's default noise variance."""
START = 20
"""Random questions before a botorch GP chooses."""
CANDIDATES = 256
"""Random unseen questions among which an acquisition function is maximised."""


@dataclass(frozen=True)
class Track:
    """Estimate and 95 % interval after each of MAX questions, minus the truth; NaN: none yet."""

    estimate: Floats
    lower: Floats
    upper: Floats

    def covered(self) -> npt.NDArray[np.bool_]:
        """Return whether each interval held the truth."""
        return np.asarray((self.lower <= 1e-9) & (self.upper >= -1e-9))


def pool(seed: int) -> Bench:
    """Return the questions of a repeat."""
    bench = proxy_bench()
    rng = np.random.default_rng([seed, 91])
    kept = np.sort(rng.permutation(len(bench.losses))[:IMAGES])
    return replace(
        bench,
        losses=bench.losses[kept],
        features=bench.features[kept],
        proxies=bench.proxies[kept],
    )


# -- ours ---------------------------------------------------------------------------------


def certified(bench: Bench, seed: int, *, adaptive: bool) -> Track:
    """Run our audit, or where it is not ``adaptive`` one on uniform questions, unpredicted."""
    losses = bench.losses.ravel()
    rows: list[tuple[float, float, float]] = []
    features = torch.from_numpy(bench.features)
    gp = bench.gp(proxies=bench.proxy_losses, features=lambda samples: features[samples])
    selector = selector_of(
        bench.space(),
        ["overall"],
        Rules(HALF_WIDTH, 0.05),
        "certify" if adaptive else "random",
        seed,
        losses=gp if adaptive else None,
        exploration=0.2 if adaptive else UNIFORM_EXPLORATION,
        candidates=2048,
    )
    for _ in range(MAX):
        draw = selector.draw()
        if draw is None:
            raise InputError(f"peers: expected more than {MAX} questions, got {len(rows)}")
        selector.take(np.array([draw.question]), draw.bet)
        selector.learn([Observation(draw.question, 1, float(losses[draw.question]))])
        sequences = selector.belief.certifying.sequences
        rows.append((sequences.estimate[0], sequences.lower[0], sequences.upper[0]))
    return _track(np.array(rows, float), bench)


# -- peers --------------------------------------------------------------------------------


def normal(bench: Bench, seed: int) -> Track:
    """Compute the normal interval at every n, which is valid only at an n chosen beforehand."""
    order = np.random.default_rng([seed, 92]).permutation(bench.losses.size)[:MAX]
    return _track(_normal_rows(bench.losses.ravel()[order]), bench)


def proeval(bench: Bench, seed: int) -> Track:
    """Run ProEval's plan from the cheaper models' scores, and its posterior after each answer."""
    sampler = import_module("proeval.sampler").BQPriorSampler(noise_variance=NOISE)
    losses = bench.losses.ravel()
    plan = sampler.plan(bench.proxies.reshape(losses.size, -1), MAX, seed=seed)
    result = plan.estimate(losses[list(plan.indices)])
    half = Z * result.integral_std
    rows = np.stack([result.estimates, result.estimates - half, result.estimates + half], axis=1)
    return _track(rows, bench)


def botorch(bench: Bench, seed: int, *, acquisition: str) -> Track:
    """Ask where the acquisition function is largest, and estimate by the plain mean."""
    from botorch.optim import optimize_acqf_discrete

    losses, inputs = bench.losses.ravel(), _inputs(bench)
    rng = np.random.default_rng([seed, 93])
    asked = [int(i) for i in rng.permutation(losses.size)[:START]]
    model: Any = None
    while len(asked) < MAX:
        if len(asked) in (START, *MARKS):
            model = _fitted(inputs[asked], torch.from_numpy(losses[asked]))
        rest = np.setdiff1d(np.arange(losses.size), asked)
        some = rng.choice(rest, CANDIDATES, replace=False)
        chosen, _ = optimize_acqf_discrete(
            _acquisition(model, acquisition), q=1, choices=inputs[some]
        )
        place = int((inputs[some] - chosen).abs().sum(dim=1).argmin())
        asked.append(int(some[place]))
        answers = torch.from_numpy(losses[asked])[:, None]
        model.set_train_data(inputs[asked], answers[:, 0], strict=False)
    return _track(_normal_rows(losses[asked]), bench)


def _inputs(bench: Bench) -> Any:
    """Return image features, proxies and the perturbation one-hot, (n, d) in the unit cube."""
    samples, variants = bench.losses.shape
    parts = [
        np.repeat(bench.features, variants, axis=0),
        bench.proxies.reshape(samples * variants, -1),
        np.tile(np.eye(variants), (samples, 1)),
    ]
    table = np.concatenate(parts, axis=1)
    low, high = table.min(axis=0), table.max(axis=0)
    return torch.from_numpy((table - low) / np.maximum(high - low, 1e-9))


def _fitted(inputs: Any, losses: Any) -> Any:
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    model = SingleTaskGP(inputs, losses[:, None], outcome_transform=None)
    if len(losses.unique()) > 1:
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model.eval()


def _acquisition(model: Any, name: str) -> Any:
    from botorch.acquisition import PosteriorStandardDeviation, UpperConfidenceBound

    if name == "UCB":
        return UpperConfidenceBound(model, beta=4.0)
    return PosteriorStandardDeviation(model)


def betting(bench: Bench, seed: int) -> Track:
    """Run our sequence on a stream with replacement, without predictions."""
    sequences = Sequences(np.array([HALF_WIDTH]), np.array([0.05]))
    zero, one, rows = np.zeros(1), np.ones(1), []
    for loss in _stream(bench, seed):
        a = np.array([loss])
        sequences.move(Step(np.array([True]), a, a, zero, one, 0.25 * one, *[zero] * 5))
        sequences.bound(zero, one)
        rows.append((sequences.estimate[0], sequences.lower[0], sequences.upper[0]))
    return _track(np.array(rows), bench)


def ville(bench: Bench, seed: int) -> Track:
    """Run ville's betting sequence on the same stream."""
    fitted = import_module("ville").BettingCS(alpha=0.05).fit(_stream(bench, seed))
    return _track(np.stack([fitted.estimate_, fitted.lower_, fitted.upper_], axis=1), bench)


def _stream(bench: Bench, seed: int) -> Floats:
    rng = np.random.default_rng([seed, 94])
    return rng.choice(bench.losses.ravel(), MAX)


def _normal_rows(losses: Floats) -> Floats:
    """Return mean and normal interval after every loss, (n, 3); the first has no interval."""
    count = np.arange(1, len(losses) + 1)
    mean = np.cumsum(losses) / count
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = (np.cumsum(losses**2) - count * mean**2) / (count - 1)
    half = Z * np.sqrt(np.maximum(variance, 0) / count)
    return np.stack([mean, mean - half, mean + half], axis=1)


def _track(rows: Floats, bench: Bench) -> Track:
    return Track(*(np.asarray(rows, float) - bench.losses.mean()).T)


METHODS: dict[str, Callable[[Bench, int], Track]] = {
    "ours, with proxies": partial(certified, adaptive=True),
    "uniform, certified": partial(certified, adaptive=False),
    "uniform, normal": normal,
    "proeval": proeval,
    "botorch, std": partial(botorch, acquisition="std"),
    "botorch, UCB": partial(botorch, acquisition="UCB"),
    "betting (ours), iid": betting,
    "ville, iid": ville,
}


# -- all of them --------------------------------------------------------------------------


def run(job: tuple[str, int]) -> Track | str:
    """Run one method in one repeat; return a sentence if its package is missing."""
    warnings.simplefilter("ignore")  # botorch's advice about scaling inputs and 0/1 outcomes
    method, seed = job
    try:
        return METHODS[method](pool(seed), seed)
    except ImportError as error:
        return f"not installed: {error.name}"


def run_all(repeats: int, workers: int = 2) -> dict[str, list[Track] | str]:
    """Return every method's tracks, or a sentence on why there are none."""
    jobs = [(method, seed) for method in METHODS for seed in range(repeats)]
    results = in_processes(run, jobs, workers)
    tracks: dict[str, list[Track] | str] = {}
    for place, method in enumerate(METHODS):
        outcomes = results[place * repeats : (place + 1) * repeats]
        missing = [outcome for outcome in outcomes if isinstance(outcome, str)]
        tracks[method] = missing[0] if missing else [t for t in outcomes if isinstance(t, Track)]
    return tracks


def table(tracks: dict[str, list[Track] | str]) -> pd.DataFrame:
    """Return one row per method and number of questions.

    "always" is the share of repeats whose interval held the truth after every question from the
    first mark to this one.
    """
    rows: list[Row] = []
    for method, of_method in tracks.items():
        if isinstance(of_method, str):
            rows.append({"method": method, "note": of_method})
            continue
        rows += [{"method": method, **_figures(of_method, mark), "note": ""} for mark in MARKS]
    return pd.DataFrame(rows)


def _figures(tracks: Sequence[Track], mark: int) -> Row:
    errors = np.array([t.estimate[mark - 1] for t in tracks])
    widths = np.array([(t.upper - t.lower)[mark - 1] / 2 for t in tracks])
    held = np.array([t.covered()[MARKS[0] - 1 : mark] for t in tracks])
    return {
        "questions": mark,
        "RMSE": float(np.sqrt(np.mean(errors**2))),
        "bias": float(errors.mean()),
        "half-width": float(widths.mean()),
        "covered": float(held[:, -1].mean()),
        "always": float(held.all(axis=1).mean()),
    }


def wide(frame: pd.DataFrame, figure: str, digits: int) -> pd.DataFrame:
    """Return one figure, methods by questions, with notes where there is none."""
    missing = frame["note"] != ""
    cells = frame[figure].map(f"{{:.{digits}f}}".format).mask(missing, frame["note"])
    marks = frame["questions"].fillna(MARKS[0]).map("n = {:.0f}".format)
    table = frame.assign(cells=cells, marks=marks).pivot(index="method", columns="marks")["cells"]
    columns = [f"n = {mark}" for mark in MARKS]
    return table.loc[frame["method"].unique(), columns].fillna("").reset_index()


def page(frame: pd.DataFrame, repeats: int) -> go.Figure:
    """Draw RMSE and coverage over questions, one line per method."""
    known = frame[frame["note"] == ""]
    long = known.melt(["method", "questions"], ["RMSE", "covered"], "figure", "value")
    lines = {"x": "questions", "y": "value", "color": "method", "line_dash": "method"}
    figure = px.line(long, **lines, facet_col="figure", log_x=True, markers=True)
    figure.update_yaxes(matches=None, showticklabels=True, title_text="")
    figure.add_hline(y=0.95, line={"dash": "dot", "color": "#444"}, row=1, col=2)
    tidy(figure, f"digits-proxy, {repeats} repeats: ours and other packages", height=520)
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, arguments, quick={"repeats": 1}, repeats=20)
    frame = table(run_all(chosen.repeats))
    save_table(frame, chosen.out / "peers.csv")
    for figure in ("RMSE", "bias", "half-width", "covered", "always"):
        show(wide(frame, figure, 4), figure)
    save_figure(page(frame, chosen.repeats), chosen.out / "peers.html")


if __name__ == "__main__":
    main()
