"""Draw Figure 4 of Concept-centric VTT, uncertainty against questions asked, in over 3 minutes.

    python -m adaptive_vtt.experiments.vtt.figure4

Source: Fountoukidou & Sznitman, Concept-centric Visual Turing Tests (MICCAI 2019), section 3. There
are three label sets x four models x four strategies x 10 repeats. All questions are asked, and
after each one the uncertainty u_c = u- + u+ is averaged over the concepts. It begins at 4. Answers
and draws differ between repeats, and labels do not; all four strategies have the same answers. The
label sets and the trained classifiers of the paper are not public; ``label_sets`` has their
substitutes.

Writes figure4.html and figure4.csv. The table has the questions that each strategy needs until the
average uncertainty is within 25, 10 and 5 % of its value u_end after all questions: the first n
with u_n - u_end <= share * (u_0 - u_end).
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go
import torch
from plotly.subplots import make_subplots

from adaptive_vtt.datasets.table import TableDataset
from adaptive_vtt.engine.belief import Observation
from adaptive_vtt.engine.selector import Selector
from adaptive_vtt.experiments.plots import COLOURS, band, line, tidy
from adaptive_vtt.experiments.program import in_processes, options, save_figure, save_table, show
from adaptive_vtt.experiments.vtt.label_sets import idrid, isic, oct_like, simulated_classifier
from adaptive_vtt.models import Simulated
from adaptive_vtt.models.local.simulated import KINDS
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.strategies import Strategy, get
from adaptive_vtt.types import Answer, Floats, Prompt

LABEL_SETS: Mapping[str, Callable[[int], TableDataset]] = {
    "IDRiD-like": idrid,
    "ISIC-like": isic,
    "OCT-like": oct_like,
}
SAMPLES = {"IDRiD-like": 43, "ISIC-like": 100, "OCT-like": 200}
QUICK_SAMPLES = {"IDRiD-like": 12, "ISIC-like": 20, "OCT-like": 20}
CLASSIFIER = "simulated classifier"
MODELS = (*KINDS, CLASSIFIER)
SHARES = (0.25, 0.10, 0.05)
DASHES = {"uncertainty+unpredictability": "dash"}
"""Dashes of curves that often lie on another one, so that both are visible."""
POINTS = 300
"""Most points of a curve that are drawn. The table uses all."""


@dataclass(frozen=True)
class Job:
    """One repeat of one panel, in which all strategies get the same answers."""

    labels: str
    samples: int
    model: str
    repeat: int


Curves = dict[tuple[str, str, str], Floats]
"""(label set, model, strategy) -> repeats x (questions + 1) average uncertainties."""


def answers_of(model: str, dataset: TableDataset, seed: int) -> Floats:
    """Return P(yes) (n, C) of one of MODELS for every question."""
    if model == CLASSIFIER:
        return simulated_classifier(dataset, seed=seed)
    prompts = [
        Prompt(None, dataset.concepts, dataset.sample_id(i), "identity", 0)
        for i in range(len(dataset))
    ]
    answers = Simulated.paper(model, dataset, seed=seed).ask(prompts)
    return np.array([answer.values for answer in answers if isinstance(answer, Answer)], float)


# inference mode takes a tenth off the engine's many small operations
@torch.inference_mode()
def ask(
    space: QuestionSpace,
    strategy: str | Strategy,
    answers: Floats,
    *,
    seed: int,
    most: int | None = None,
) -> tuple[Selector, Floats]:
    """Ask up to ``most`` questions one by one (default: all), whose answers are (n, C).

    Returns:
        The selector after them, and the average uncertainty before the first question and after
        each, (questions + 1,).
    """
    chosen = get(strategy) if isinstance(strategy, str) else strategy
    selector = Selector(space, chosen, seed=seed)
    # with the identity alone, a question's number is its place in the table of answers
    truth = space.truth(np.arange(space.total))
    outcomes = [
        Observation(number, int(t), float((a >= 0.5) != t), float(a), float(a + t) / 2)
        for number, (a, t) in enumerate(zip(answers.ravel(), truth, strict=True))
    ]
    curve = [_average(selector)]
    while len(curve) <= (most or space.size) and (draw := selector.draw()) is not None:
        selector.take(np.array([draw.question]))
        selector.learn([outcomes[draw.question]])
        curve.append(_average(selector))
    return selector, np.array(curve)


def run(job: Job) -> dict[str, Floats]:
    """Return the curve (questions + 1,) of each strategy."""
    dataset = LABEL_SETS[job.labels](job.samples)
    space, answers = QuestionSpace(dataset), answers_of(job.model, dataset, job.repeat)
    return {s: ask(space, s, answers, seed=job.repeat)[1] for s in COLOURS}


def run_all(jobs: Sequence[Job], workers: int) -> Curves:
    """Run all jobs, in ``workers`` processes at a time."""
    done: Curves = {}
    for job, curves in zip(jobs, in_processes(run, jobs, workers), strict=True):
        for strategy, curve in curves.items():
            key = (job.labels, job.model, strategy)
            done[key] = np.vstack([*done.get(key, []), curve])
    return done


def questions_needed(curves: Floats, share: float) -> npt.NDArray[np.int64]:
    """Return the first question (R,) at which each of R runs is within ``share`` of its end."""
    start, end = curves[:, :1], curves[:, -1:]
    return np.argmax(curves - end <= share * (start - end), axis=1)


def summary(curves: Curves) -> pd.DataFrame:
    """Return one row per panel and strategy.

    For each share it has the median over repeats of the questions needed, and its ratio to the
    median of "random".
    """
    rows = []
    for (labels, model, strategy), runs in curves.items():
        row: dict[str, str | int | float] = {
            "label set": labels,
            "model": model,
            "strategy": strategy,
            "questions": runs.shape[1] - 1,
        }
        for share in SHARES:
            needed = float(np.median(questions_needed(runs, share)))
            plain = float(np.median(questions_needed(curves[labels, model, "random"], share)))
            row[f"within {share:.0%}"] = needed
            row[f"ratio {share:.0%}"] = needed / plain
        rows.append(row)
    return pd.DataFrame(rows)


def draw(curves: Curves) -> go.Figure:
    """Draw means and ranges over repeats, models (rows) by label sets (columns)."""
    columns = list(dict.fromkeys(labels for labels, _, _ in curves))
    figure = make_subplots(
        len(MODELS),
        len(columns),
        column_titles=columns,
        row_titles=[m.replace(" ", "<br>") for m in MODELS],
        shared_yaxes=True,
        shared_xaxes="columns",
        vertical_spacing=0.035,
        horizontal_spacing=0.03,
    )
    for (labels, model, strategy), runs in curves.items():
        place = {"row": MODELS.index(model) + 1, "col": columns.index(labels) + 1}
        for trace in _traces(strategy, runs, legend=place == {"row": 1, "col": 1}):
            figure.add_trace(trace, **place)
    figure.update_xaxes(title_text="questions asked", row=len(MODELS))
    figure.update_yaxes(title_text="average uncertainty", rangemode="tozero", col=1)
    tidy(figure, "Average uncertainty over the concepts, as questions are asked", height=1250)
    return figure


def _traces(strategy: str, runs: Floats, *, legend: bool) -> Iterable[go.Scatter]:
    n = runs.shape[1]
    x = np.unique(np.linspace(0, n - 1, min(n, POINTS)).astype(int))
    runs, colour = runs[:, x], COLOURS[strategy]
    low, high = runs.min(axis=0), runs.max(axis=0)
    yield band(x, low, high, colour, legendgroup=strategy, showlegend=False)
    in_legend = {"name": strategy, "legendgroup": strategy, "showlegend": legend}
    hover, dash = "%{x} questions: %{y:.3f}", DASHES.get(strategy, "solid")
    yield line(x, runs.mean(axis=0), colour, dash=dash, hovertemplate=hover, **in_legend)


def _average(selector: Selector) -> float:
    answers = selector.belief.answers
    return answers.uncertainty().sum().item() / answers.concepts


def all_jobs(samples: Mapping[str, int], repeats: int) -> list[Job]:
    """Return all jobs, the largest first, so that no worker ends with a long one."""
    biggest_first = sorted(samples.items(), key=lambda item: -item[1])
    return [Job(s, n, m, r) for s, n in biggest_first for m in MODELS for r in range(repeats)]


def _processor_time() -> float:
    """Return the processor seconds of this process and of its children that ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(
        __doc__,
        arguments,
        quick={"repeats": 2, "workers": 1},
        repeats=10,
        workers=os.cpu_count() or 1,
    )
    worked = _processor_time()
    jobs = all_jobs(QUICK_SAMPLES if chosen.quick else SAMPLES, chosen.repeats)
    done = run_all(jobs, chosen.workers)
    curves = {key: done[key] for s in SAMPLES for key in done if key[0] == s}
    worked = _processor_time() - worked
    asked = sum(runs.shape[0] * (runs.shape[1] - 1) for runs in curves.values())
    save_table(summary(curves), chosen.out / "figure4.csv")
    save_figure(draw(curves), chosen.out / "figure4.html")
    time = f"{worked / asked * 1e6:.0f} microseconds of processor time per question"
    show(f"{asked} questions, {chosen.repeats} repeats, {time}")


if __name__ == "__main__":
    main()
