"""Draw Figures 2 and 3 of Concept-centric VTT for a trained classifier, in under a minute.

    python -m adaptive_vtt.experiments.vtt.trained_figures

Source: Fountoukidou & Sznitman, Concept-centric Visual Turing Tests (MICCAI 2019), Figures 2
(right) and 3. The paper's trained classifiers are not public. Here the bundled CNN answers about
200 of the bundled garments, which it was not trained on, with 14 concepts, the rarest in about 2 %
of the images. Figure 2 is one run of the paper's strategy (d), and Figure 3 one run of each
strategy, both after 100 questions.

A third figure has mean performance curves: the mean of the answer GP, divided by the number of
questions about the concept, and averaged over repeats that differ in the draws alone. It also shows
the curve after all questions. "distance" compares a run with that curve. Answers to questions with
the truth no are a distribution on [0, 0.5] of a, and those with the truth yes one on [0.5, 1]. The
distance is the largest difference of the cumulative shares (Kolmogorov and Smirnov's), from 0 to 1,
and 1 without questions. It is averaged over both sides and all concepts.

Writes trained-figure2.html, trained-figure3.html and trained-mean.html, and the tables
trained-figure3.csv and trained-mean.csv.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from adaptive_vtt.datasets import fashion
from adaptive_vtt.datasets.base import Dataset
from adaptive_vtt.datasets.view import Subset
from adaptive_vtt.demo.fashion_cnn import predict
from adaptive_vtt.engine.selector import Selector
from adaptive_vtt.experiments.plots import COLOURS, band, line
from adaptive_vtt.experiments.program import Row, options, save_figure, save_table
from adaptive_vtt.experiments.vtt.figure3 import draw, panels, run, summary
from adaptive_vtt.experiments.vtt.figure4 import ask
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.types import Floats
from adaptive_vtt.utils.random_streams import generator

STRATEGY = "uncertainty+unpredictability"


def garments(samples: int) -> tuple[Dataset, Floats]:
    """Return ``samples`` of the bundled images, and the bundled CNN's answers (n, C)."""
    whole = fashion()
    chosen = np.sort(generator(0, "trained figures").permutation(len(whole))[:samples])
    dataset = Subset(whole, chosen)
    return dataset, predict([dataset.sample(k).require_image() for k in range(samples)])


def by_prevalence(dataset: Dataset) -> list[str]:
    """Return the concepts that occur, the most common one first."""
    present = dataset.counts[:, 1]
    order = np.argsort(-present, kind="stable")
    return [dataset.concepts[place] for place in order if present[place] > 0]


def mean_curve(state: Selector) -> Floats:
    """Return the mean of the answer GP, C x bins, over the questions about the concept."""
    asked = (state.space.cell_counts - state.pool.remaining).sum(axis=1, keepdims=True)
    return np.asarray(state.belief.answers.mean().cpu().numpy() / np.maximum(asked, 1), float)


def distance(state: Selector, last: Selector) -> float:
    """Return the module's "distance" of a selector from one after all questions."""
    grid = state.belief.answers.grid.cpu().numpy()
    counts = state.belief.answers.counts.cpu().numpy()
    final = last.belief.answers.counts.cpu().numpy()
    distances = []
    for side in (grid < 0.5, grid > 0.5):  # answers at .5 itself are of both
        known = final[:, side].sum(axis=1) > 0
        so_far, after_all = _cumulative(counts[known][:, side]), _cumulative(final[known][:, side])
        gap = np.abs(so_far - after_all).max(axis=1)
        distances.append(np.where(so_far[:, -1] > 0, gap, 1.0))
    return float(np.mean(np.concatenate(distances)))


def _cumulative(counts: Floats) -> Floats:
    sums = np.cumsum(counts, axis=1)
    return sums / np.maximum(sums[:, -1:], 1)


def mean_table(repeats: Sequence[Mapping[str, Selector]], last: Selector) -> pd.DataFrame:
    """Return one row per strategy: mean and standard deviation of its repeats' distances."""
    rows = []
    for strategy in COLOURS:
        runs = [distance(states[strategy], last) for states in repeats]
        rows.append({"strategy": strategy, "distance": np.mean(runs), "deviation": np.std(runs)})
    return pd.DataFrame(rows)


def draw_means(
    curves: Mapping[str, Floats],
    final: Floats,
    grid: Floats,
    dataset: Dataset,
    concepts: Sequence[str],
    title: str,
) -> go.Figure:
    """Draw mean, range and end of the curves, strategies (rows) by concepts (columns)."""

    def traces(strategy: str, concept: str, legend: bool) -> list[go.Scatter]:
        place = dataset.concepts.index(concept)
        return _traces(curves[strategy][:, place], final[place], grid, COLOURS[strategy], legend)

    return panels([*curves], concepts, traces, "share of answers", title)


def _traces(
    runs: Floats, final: Floats, grid: Floats, colour: str, legend: bool
) -> list[go.Scatter]:
    shared: Row = {"showlegend": legend}
    low, high = runs.min(axis=0), runs.max(axis=0)
    return [
        band(grid, low, high, colour, name="range of repeats", **shared),
        line(grid, runs.mean(axis=0), colour, name="mean", **shared),
        line(grid, final, "#222", dash="dot", name="after all questions", **shared),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(
        __doc__,
        arguments,
        quick={"samples": 30, "questions": 30, "repeats": 2},
        samples=200,
        questions=100,
        repeats=10,
    )
    questions = chosen.questions
    dataset, answers = garments(chosen.samples)
    ranked = by_prevalence(dataset)
    common, middle, rare = ranked[0], ranked[len(ranked) // 2], ranked[-1]
    repeats = [run(dataset, answers, questions, seed) for seed in range(chosen.repeats)]
    last, _ = ask(QuestionSpace(dataset), "random", answers, seed=0)

    grid = last.belief.answers.grid.cpu().numpy().astype(float)
    curves = {s: np.stack([mean_curve(states[s]) for states in repeats]) for s in COLOURS}
    save_table(summary(repeats[0]), chosen.out / "trained-figure3.csv")
    save_table(mean_table(repeats, last), chosen.out / "trained-mean.csv")
    known = f"Performance model of a trained classifier after {questions} questions"
    means = f"Mean performance curves of {chosen.repeats} runs of {questions} questions"
    only = {STRATEGY: repeats[0][STRATEGY]}
    pages = {
        "figure2": draw(only, (common, middle, rare), known, height=480),
        "figure3": draw(repeats[0], (common, rare), known),
        "mean": draw_means(curves, mean_curve(last), grid, dataset, (common, rare), means),
    }
    for name, page in pages.items():
        save_figure(page, chosen.out / f"trained-{name}.html")


if __name__ == "__main__":
    main()
