"""Other packages on the same questions: errors of their estimates, coverage of their intervals.

Every repeat audits 200 of digits-proxy's 250 images, 1,600 questions, drawn at random; all
methods of a repeat face the same ones. What is estimated is their mean loss.

    python -m adaptive_vtt.experiments.engine.peers [--quick] --out DIR

ours            certified intervals; three cheaper models' expected losses as features
uniform         the same certificate on uniform questions without predictions
normal          mean +- 1.96 sd / sqrt(n) of uniform questions, drawn without replacement
proeval         ProEval's BQPriorSampler (pip install proeval==0.1.1, and requests): Bayesian
                quadrature on the same three models, its estimate +- 1.96 integral_std
botorch ...     SingleTaskGP, argmax of an acquisition function, raw mean +- 1.96 sd / sqrt(n)
betting, ville  our sequence and ville.BettingCS (pip install ville) on the same stream of
                uniform questions, drawn with replacement: a cross-check of the former

Peers are optional: where one is missing, its row says so.
"""

import argparse
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from adaptive_vtt.errors import InputError
from adaptive_vtt.experiments.engine.digits import Bench, proxy_bench
from adaptive_vtt.experiments.plots import show, tidy, write_page
from adaptive_vtt.types import Floats
from adaptive_vtt.utils.files import write_text

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
COLOURS = ("#0072B2", "#7f7f7f", "#56B4E9", "#D55E00", "#E69F00", "#CC79A7", "#009E73", "#000000")


@dataclass(frozen=True)
class Track:
    """Estimate and 95 % interval after each of MAX questions, less the truth; NaN: none yet."""

    estimate: Floats
    lower: Floats
    upper: Floats

    def covered(self) -> npt.NDArray[np.bool_]:
        """Whether each interval held the truth."""
        return np.asarray((self.lower <= 1e-9) & (self.upper >= -1e-9))


def pool(seed: int) -> Bench:
    """The questions of a repeat."""
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
    """Our audit; or uniform questions, no predictions."""
    from adaptive_vtt.certify import Certifier, named_targets
    from adaptive_vtt.engine.belief import Belief, Observation
    from adaptive_vtt.engine.selector import Selector
    from adaptive_vtt.strategies import get

    space = bench.space()
    certifier = Certifier(
        space,
        named_targets(space, ["overall"]),
        answers="one",
        half_width=HALF_WIDTH,
        confidence=0.95,
    )
    belief = Belief(space, seed=seed, certifier=certifier, losses=_gp(bench) if adaptive else None)
    selector = Selector(
        space,
        get("certify" if adaptive else "random"),
        seed=seed,
        exploration=0.2 if adaptive else 1e-9,
        candidates=2048,
        answers="one",
        belief=belief,
    )
    losses, rows = bench.losses.ravel(), []
    for _ in range(MAX):
        draw = selector.draw()
        if draw is None:
            raise InputError(f"peers: expected more than {MAX} questions, got {space.size}")
        selector.take(np.array([draw.question]), draw.bet)
        truth = int(space.truth([draw.question])[0])
        selector.learn([Observation(draw.question, truth, float(losses[draw.question]))])
        sequences = certifier.sequences
        rows.append((sequences.estimate[0], sequences.lower[0], sequences.upper[0]))
    return _track(np.array(rows, float), bench)


def _gp(bench: Bench) -> Any:
    import torch

    from adaptive_vtt.surrogates import QuestionGP

    features = torch.from_numpy(bench.features)
    return QuestionGP(
        bench.relation,
        bench.severity,
        1,
        shared=False,
        proxies=bench.proxy_losses,
        features=lambda samples: features[samples],
    )


# -- peers --------------------------------------------------------------------------------


def normal(bench: Bench, seed: int) -> Track:
    """The textbook interval, at every n; right at any one n that was chosen beforehand."""
    order = np.random.default_rng([seed, 92]).permutation(bench.losses.size)[:MAX]
    return _track(_normal_rows(bench.losses.ravel()[order]), bench)


def proeval(bench: Bench, seed: int) -> Track:
    """ProEval's plan from the cheaper models' scores, then its posterior after every answer."""
    sampler = import_module("proeval.sampler").BQPriorSampler(noise_variance=NOISE)
    losses = bench.losses.ravel()
    plan = sampler.plan(bench.proxies.reshape(losses.size, -1), MAX, seed=seed)
    found = plan.estimate(losses[list(plan.indices)])
    half = Z * found.integral_std
    rows = np.stack([found.estimates, found.estimates - half, found.estimates + half], axis=1)
    return _track(rows, bench)


def botorch(bench: Bench, seed: int, *, acquisition: str) -> Track:
    """Asks where the acquisition function is largest, and takes the plain mean."""
    import torch
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
    """(n, d) in the unit cube: image features, proxies, and which perturbation."""
    import torch

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
    """Our sequence on a stream with replacement, nothing predicted."""
    from adaptive_vtt.certify.sequences import Sequences, Step

    sequences = Sequences(np.array([HALF_WIDTH]), np.array([0.05]))
    zero, one, rows = np.zeros(1), np.ones(1), []
    for loss in _stream(bench, seed):
        a = np.array([loss])
        sequences.move(Step(np.array([True]), a, a, zero, one, 0.25 * one, *[zero] * 5))
        sequences.bound(zero, one)
        rows.append((sequences.estimate[0], sequences.lower[0], sequences.upper[0]))
    return _track(np.array(rows), bench)


def ville(bench: Bench, seed: int) -> Track:
    """ville's betting sequence on the same stream."""
    found = import_module("ville").BettingCS(alpha=0.05).fit(_stream(bench, seed))
    return _track(np.stack([found.estimate_, found.lower_, found.upper_], axis=1), bench)


def _stream(bench: Bench, seed: int) -> Floats:
    rng = np.random.default_rng([seed, 94])
    return rng.choice(bench.losses.ravel(), MAX)


def _normal_rows(losses: Floats) -> Floats:
    """(n, 3): mean and normal interval after every loss; no interval from one."""
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
    """One method in one repeat; a sentence where its package is missing."""
    import warnings

    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # botorch's advice about scaling inputs and 0/1 outcomes
    method, seed = job
    try:
        return METHODS[method](pool(seed), seed)
    except ImportError as error:
        return f"not installed: {error.name}"


def run_all(repeats: int, workers: int = 2) -> dict[str, list[Track] | str]:
    """Every method's tracks, or why there are none."""
    jobs = [(method, seed) for method in METHODS for seed in range(repeats)]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as workers_:
        found = list(workers_.map(run, jobs))
    tracks: dict[str, list[Track] | str] = {}
    for place, method in enumerate(METHODS):
        mine = found[place * repeats : (place + 1) * repeats]
        missing = [entry for entry in mine if isinstance(entry, str)]
        tracks[method] = missing[0] if missing else [t for t in mine if isinstance(t, Track)]
    return tracks


def table(tracks: dict[str, list[Track] | str]) -> pd.DataFrame:
    """One row per method and number of questions.

    ``always``: share of repeats whose interval held the truth after every question from the
    first mark to this one.
    """
    rows: list[dict[str, Any]] = []
    for method, mine in tracks.items():
        if isinstance(mine, str):
            rows.append({"method": method, "note": mine})
            continue
        rows += [{"method": method, **_figures(mine, mark), "note": ""} for mark in MARKS]
    return pd.DataFrame(rows)


def _figures(tracks: Sequence[Track], mark: int) -> dict[str, Any]:
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
    """Methods down, questions across, one figure; notes where there is none."""
    rows = []
    for method, part in frame.groupby("method", sort=False):
        note = str(part["note"].iloc[0])
        cells = [note] + [""] * (len(MARKS) - 1)
        if not note:
            cells = [f"{value:.{digits}f}" for value in part[figure]]
        rows.append([method, *cells])
    return pd.DataFrame(rows, columns=["method", *(f"n = {mark}" for mark in MARKS)])


def page(frame: pd.DataFrame, repeats: int, path: Path) -> None:
    """RMSE and coverage over questions, one line per method."""
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=1, cols=2, subplot_titles=["RMSE", "intervals that held"])
    known = frame[frame["note"] == ""]
    for number, (method, part) in enumerate(known.groupby("method", sort=False)):
        line = {"color": COLOURS[number], "dash": ("solid", "dash")[number % 2]}
        for column, name in ((1, "RMSE"), (2, "covered")):
            figure.add_scatter(
                x=part["questions"].tolist(),
                y=part[name].tolist(),
                name=str(method),
                legendgroup=str(method),
                showlegend=column == 1,
                mode="lines+markers",
                line=line,
                row=1,
                col=column,
            )
    figure.add_hline(y=0.95, line={"dash": "dot", "color": "#444"}, row=1, col=2)
    tidy(figure, f"digits-proxy, {repeats} repeats: ours and other packages", height=520)
    figure.update_xaxes(title_text="questions", type="log", tickvals=list(MARKS))
    figure.update_yaxes(range=[0, 1.04], row=1, col=2)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_page(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("bench"))
    parser.add_argument("--quick", action="store_true", help="3 repeats instead of --repeats")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args(arguments)
    repeats = 3 if options.quick else options.repeats
    frame = table(run_all(repeats))
    for name, title, digits in (
        ("RMSE", "RMSE of the estimate", 4),
        ("bias", "mean error of the estimate", 4),
        ("half-width", "mean half-width of the 95 % interval", 3),
        ("covered", "share of repeats covered at n", 2),
        ("always", "share of repeats covered at every n from 50 on", 2),
    ):
        show(wide(frame, name, digits), f"{title} ({repeats} repeats)")
    write_text(options.out / "peers.csv", frame.to_csv(index=False))
    page(frame, repeats, options.out / "peers.html")


if __name__ == "__main__":
    main()
