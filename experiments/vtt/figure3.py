"""Draw Figure 3 of Concept-centric VTT, the performance model of two concepts, within seconds.

    python -m adaptive_vtt.experiments.vtt.figure3

Source: Fountoukidou & Sznitman, Concept-centric Visual Turing Tests (MICCAI 2019), section 3.2. The
label set is OCT-like, and a simulated classifier replaces the trained one (see ``label_sets`` for
both). There are four strategies, a common concept (drusen) and a rare one (geographic atrophy). The
figure shows one run of 100 questions, as in the paper, and depends on the seed.

Writes figure3.html and figure3.csv. The table has, for every strategy and concept, the number of
questions about samples without it and with it, and the uncertainty u = u- + u+, which is 4 at
first.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from adaptive_vtt.datasets.base import Dataset
from adaptive_vtt.engine.selector import Selector
from adaptive_vtt.experiments.plots import COLOURS, band, line, tidy
from adaptive_vtt.experiments.program import options, save_figure, save_table
from adaptive_vtt.experiments.vtt.figure4 import ask
from adaptive_vtt.experiments.vtt.label_sets import oct_like, simulated_classifier
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.types import Floats

CONCEPTS = ("drusen", "geographic atrophy")
QUARTERS = {"TN": 0.125, "FP": 0.375, "FN": 0.625, "TP": 0.875}
"""Middle of each quarter of the answer coordinate a = (f + truth) / 2."""


def run(dataset: Dataset, answers: Floats, questions: int, seed: int) -> dict[str, Selector]:
    """Return each strategy's selector after ``questions`` of the same answers (n, C)."""
    space = QuestionSpace(dataset)
    return {s: ask(space, s, answers, seed=seed, most=questions)[0] for s in COLOURS}


def summary(states: Mapping[str, Selector]) -> pd.DataFrame:
    """Return one row per strategy and concept."""
    rows = []
    for strategy, state in states.items():
        asked = state.space.cell_counts - state.pool.remaining
        uncertainty = state.belief.answers.uncertainty().sum(dim=1)
        for index, concept in enumerate(state.space.concepts):
            rows.append(
                {
                    "strategy": strategy,
                    "concept": concept,
                    "asked without it": int(asked[index, 0]),
                    "asked with it": int(asked[index, 1]),
                    "u": float(uncertainty[index]),
                }
            )
    return pd.DataFrame(rows)


def draw(
    states: Mapping[str, Selector], concepts: Sequence[str], title: str, height: int = 1250
) -> go.Figure:
    """Draw mean, 95 % region and observed counts, strategies (rows) by concepts (columns)."""

    def traces(strategy: str, concept: str, legend: bool) -> Iterable[go.Scatter]:
        state = states[strategy]
        index = state.space.concepts.index(concept)
        return _traces(state, index, COLOURS[strategy], legend=legend)

    return panels([*states], concepts, traces, "answers per bin", title, height)


def panels(
    strategies: Sequence[str],
    concepts: Sequence[str],
    traces: Callable[[str, str, bool], Iterable[go.Scatter]],
    y_title: str,
    title: str,
    height: int = 1250,
) -> go.Figure:
    """Draw a panel over the answer coordinate per strategy (rows) and concept (columns).

    Args:
        strategies: Names of the rows.
        concepts: Names of the columns.
        traces: Function of strategy, concept and whether the legend has them -> a panel's traces.
        y_title: Title of the y axis.
        title: Title of the figure.
        height: Height in pixels.
    """
    figure = make_subplots(
        len(strategies),
        len(concepts),
        column_titles=list(concepts),
        row_titles=[s.replace("+", "+<br>") for s in strategies],
        shared_xaxes=True,
        vertical_spacing=0.05,
        horizontal_spacing=0.07,
    )
    figure.update_annotations(selector=lambda a: a.text in concepts, yshift=16)
    for row, strategy in enumerate(strategies, start=1):
        for column, concept in enumerate(concepts, start=1):
            for trace in traces(strategy, concept, row == column == 1):
                figure.add_trace(trace, row=row, col=column)
            _quarters(figure, row, column)
    figure.update_xaxes(range=[-0.01, 1.01], tickvals=[0, 0.25, 0.5, 0.75, 1])
    figure.update_xaxes(title_text="answer coordinate a", row=len(strategies))
    figure.update_yaxes(title_text=y_title, col=1)
    tidy(figure, title, height=height)
    return figure


def _traces(state: Selector, concept: int, colour: str, *, legend: bool) -> Iterable[go.Scatter]:
    gp = state.belief.answers
    a, counts = gp.grid.cpu().numpy(), gp.counts[concept].cpu().numpy()
    mean = gp.mean()[concept].cpu().numpy()
    twice = 2 * gp.variance()[concept].sqrt().cpu().numpy()
    observed = counts > 0
    yield band(a, mean - twice, mean + twice, colour, name="95 % region", showlegend=legend)
    hover = "a = %{x:.2f}: %{y:.2f}"
    yield line(a, mean, colour, dash="dot", name="mean", hovertemplate=hover, showlegend=legend)
    yield go.Scatter(
        x=a[observed],
        y=counts[observed],
        mode="markers",
        marker={"color": "#222", "size": 6},
        name="observed",
        hovertemplate="a = %{x:.2f}: %{y} answers",
        showlegend=legend,
    )


def _quarters(figure: go.Figure, row: int, column: int) -> None:
    """Mark TN, FP, FN and TP in one panel."""
    for border in (0.25, 0.5, 0.75):
        figure.add_vline(
            border, line={"color": "#999", "width": 1, "dash": "dash"}, row=row, col=column
        )
    for name, middle in QUARTERS.items():
        figure.add_annotation(
            x=middle,
            y=1,
            yref="y domain",
            yanchor="bottom",
            text=name,
            showarrow=False,
            font={"size": 11, "color": "#555"},
            row=row,
            col=column,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(
        __doc__,
        arguments,
        quick={"samples": 20, "questions": 30},
        seed=0,
        samples=200,
        questions=100,
    )
    dataset = oct_like(chosen.samples)
    answers = simulated_classifier(dataset, seed=chosen.seed)
    states = run(dataset, answers, chosen.questions, chosen.seed)
    save_table(summary(states), chosen.out / "figure3.csv")
    title = f"Performance model of two concepts after {chosen.questions} questions"
    save_figure(draw(states, CONCEPTS, title), chosen.out / "figure3.html")


if __name__ == "__main__":
    main()
