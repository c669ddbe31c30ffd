"""The figures of a comparison, and its table of peers, by hand."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt.benchmark import summary
from adaptive_vtt.benchmark.comparison import StrategyComparison
from adaptive_vtt.benchmark.estimators import lure, plug_in, running_means
from adaptive_vtt.benchmark.figures import page
from adaptive_vtt.benchmark.runs import is_checkpoint, levels_to
from adaptive_vtt.experiments.engine import peers

# -- the figures, by hand -----------------------------------------------------------------


def planted(strategy: str, seed: int, calls: int | None, *, missed: bool, last: float) -> Any:
    """A run to half-width .1 that ended after 100 calls with estimate ``last``."""
    return {
        "strategy": strategy,
        "seed": seed,
        "calls": 100,
        "reason": "",
        "seconds": 0.001,
        "calls_to": [[0.3, 10], [0.2, 30], [0.1, calls]],
        "at": [1, 50, 100],
        "half_width": [0.5, 0.2, 0.1 if calls else 0.15],
        "half_widths": [[0.5, 0.3], [0.2, 0.1], [0.1 if calls else 0.15, 0.05]],
        "certified": [True],
        "variance_ratio": 0.5,
        "all_calls": 960,
        "estimates": {"certified": [[0.5], [0.4], [last]]},
        "held": True,
        "missed": missed,
    }


def planted_runs() -> list[Any]:
    return [
        planted("uniform", 0, 100, missed=False, last=0.3),
        planted("uniform", 1, 80, missed=False, last=0.3),
        planted("neyman", 0, 45, missed=False, last=0.33),
        planted("neyman", 1, None, missed=True, last=0.26),
    ]


def test_summary_figures_by_hand():
    table = summary.certified_summary(planted_runs(), [0.3]).set_index("strategy")
    uniform, neyman = table.loc["uniform"], table.loc["neyman"]
    assert uniform["calls to 0.1"] == 90
    assert uniform[summary.RATIO] == 1
    assert neyman["calls to 0.2"] == 30
    assert pd.isna(neyman["calls to 0.1"])  # one of two did not get there
    assert pd.isna(neyman[summary.RATIO])
    assert neyman["ever missed"] == 0.5
    assert neyman["coverage"] == 1
    assert neyman["RMSE at stop"] == pytest.approx(math.sqrt((0.03**2 + 0.04**2) / 2), abs=1e-4)
    estimators = summary.estimator_summary(planted_runs(), [0.3]).set_index("strategy")
    assert estimators.loc["neyman", "RMSE at 50"] == pytest.approx(0.1)
    assert estimators.loc["neyman", "bias at stop"] == pytest.approx(-0.005)


def counted(**calls: list[int | None]) -> list[Any]:
    """Runs to half-width .1 by strategy: the calls of each seed, None where it fell short."""
    return [
        planted(name.replace("_", "-"), seed, each, missed=False, last=0.3)
        for name, every in calls.items()
        for seed, each in enumerate(every)
    ]


TIMES = "times the calls (5 repeats)"
MORE = "about 7 repeats would"
UNDECIDED = "5 repeats cannot decide whether certify needs fewer calls than {} ({})"
TOLD = f"Against uniform, certify needed 0.465 to 0.536 {TIMES}"
SHORT = (
    "The budget was too small for {}: not all targets were within +-10 points after 100 calls in "
    "{} repeats{}; a budget of about 230 calls would do"
)


@pytest.mark.parametrize(
    ("calls", "sentences"),
    [
        ({"certify": [50, 46, 54, 50, 50]}, [TOLD]),
        ({"certify": [50, 46, 120, 50, 90]}, [UNDECIDED.format("uniform", MORE)]),
        (
            {"certify": [50, 46, 54, 50, 50], "random": [50, 50, 50, 46, 54]},
            [
                f"Against uniform, certify needed 0.451 to 0.553 {TIMES}",
                f"Against uniform, random needed 0.451 to 0.553 {TIMES}",
                UNDECIDED.format("random", "100 repeats would not either"),
            ],
        ),
        (
            {"certify": [50, 46, 54, 50, 50], "argmax": [None, 9, 9, 9, 9]},
            [
                f"Against uniform, certify needed 0.451 to 0.553 {TIMES}",
                SHORT.format("argmax", "1 of 5", ", while certify needed at most 54"),
            ],
        ),
    ],
)
def test_a_comparison_concludes_in_whole_sentences(calls: Any, sentences: list[str]):
    assert summary.conclusion(counted(uniform=[100] * 5, **calls)) == sentences


def test_few_repeats_tell_nothing_and_many_strategies_take_more_of_them() -> None:
    alike = counted(uniform=[100, 100, 100], certify=[50, 50, 50])  # no spread is seen in three
    few = ["Too few repeats to compare: expected 4 or more, got 3"]
    assert summary.conclusion(alike) == few
    alone = summary.conclusion(counted(uniform=[100], certify=[50]))
    assert alone == ["Too few repeats to compare: expected 4 or more, got 1"]
    unsure = {"uniform": [100] * 4, "certify": [60, 85, 70, 80]}
    assert summary.conclusion(counted(**unsure))[0].startswith("Against uniform, certify")
    rivals = {"a": [99] * 4, "b": [99] * 4, "c": [99] * 4}
    conclusion = "; ".join(summary.conclusion(counted(**unsure, **rivals)))
    assert "whether certify needs fewer calls than uniform" in conclusion


@pytest.mark.parametrize(("everything", "advised"), [(231, 230), (150, 150)])
def test_no_more_calls_are_advised_than_there_are(everything: int, advised: int) -> None:
    runs = [{**run, "all_calls": everything} for run in counted(uniform=[100], certify=[None])]
    sentence = summary.conclusion(runs)[-1]
    assert sentence.endswith(f"a budget of about {advised} calls would do")
    assert summary.sufficient_budget(runs) == advised
    assert summary.sufficient_budget(runs[:1]) is None  # it is there


def test_ratios_are_of_the_same_seeds() -> None:
    """Spaces that are hard with one seed are hard for all: pairs cancel what medians do not."""
    runs = counted(uniform=[100, 1000, 300], certify=[50, 600, 120])
    row = summary.certified_summary(runs).set_index("strategy").loc["certify"]
    assert row[summary.RATIO] == 0.5  # 120 / 300 is that of the medians
    assert summary.conclusion(counted(uniform=[None, 9], certify=[5, None]))[1:] == [
        SHORT.format(name, "1 of 2", "") for name in ("uniform", "certify")
    ]


def test_a_comparison_is_saved_as_tables_for_a_paper_too(tmp_path: Path) -> None:
    result = StrategyComparison(planted_runs(), 0.1, 0.95, ["overall", "a"], [0.3])
    paths = result.save(tmp_path / "out")
    names = [f"compare.{ending}" for ending in ("html", "json", "csv", "tex")]
    names += ["compare-estimators.csv", "compare-estimators.tex"]
    assert [path.name for path in paths] == names
    assert all(path.is_file() for path in paths)
    pd.testing.assert_frame_equal(
        pd.read_csv(paths[2]).convert_dtypes(), result.table.convert_dtypes(), check_dtype=False
    )
    head, *rows = result.table.drop(columns="repeats").to_csv(index=False).splitlines()
    assert head.startswith("strategy,calls to 0.3,calls to 0.2,calls to 0.1,times uniform's calls")
    assert [row.partition(",")[0] for row in rows] == ["uniform", "neyman"]
    text = paths[3].read_text()
    assert "calls to ±10 points" in text
    page_text = paths[0].read_text()
    assert "widest half-width at 100, points" in page_text
    assert ">12.5</td>" in page_text  # of 0.1 and 0.15
    assert r"\toprule" in text
    assert r"\caption{Median calls until all targets (2) are known to within $\pm$10 poin" in text
    assert "over 2 repeats with the same seeds" in text
    assert "same seeds; $>$ or --: not reached by then." in text
    assert r"neyman & 10 & 30 & $>$100 & -- & 3.54 & 1 & 0.5 \\" in text
    assert r"\begin{tabular}{lrrrrrrr}" in text
    assert "variance ratio" not in text  # that many columns fit no page
    assert r"uniform & certified & 10 & 0 & 0 & 0 \\" in paths[5].read_text()


def test_medians_that_were_not_reached_are_a_series_of_their_own() -> None:
    runs = counted(uniform=[None, None], certify=[50, 61])
    result = StrategyComparison(runs, 0.1, 0.95, ["overall"]).figures()
    assert [*result["calls"].data[0].text] == ["56"]  # a whole number, as the tables have it
    assert list(result) == ["widths", "calls"]
    rows = [(t.name, x, y) for t in result["calls"].data for x, y in zip(t.x, t.y, strict=True)]
    assert rows == [
        ("median", 55.5, "certify"),
        ("median more than", 100, "uniform"),
        ("repeats", 50, "certify"),
        ("repeats", 61, "certify"),
    ]
    assert result["calls"].layout.yaxis.categoryarray == ("uniform", "certify")
    exploring = [{"strategy": "random", "seed": 0, "at": [0, 1], "uncertainty": [1.0, 0.9]}]
    assert list(StrategyComparison(exploring).figures()) == ["uncertainty"]


def test_the_mean_half_width_and_every_target_have_a_curve() -> None:
    table = summary.certified_summary(planted_runs()).set_index("strategy")
    assert table.loc["neyman", "widest half-width at 100"] == 0.125  # of 0.1 and 0.15
    assert table.loc["neyman", "mean half-width at 100"] == 0.0875
    compared = StrategyComparison(planted_runs(), 0.1, 0.95, ["overall", "a"])
    drawn = compared.figures()
    assert list(drawn) == ["widths", "mean width", "width of overall", "width of a", "calls"]
    ends = {name: figure.data[0].y[-1] for name, figure in drawn.items() if name != "calls"}
    wanted = {"widths": 10, "mean width": 7.5, "width of overall": 10, "width of a": 5}
    assert ends == pytest.approx(wanted)
    html = page(planted_runs(), "", [], {}, ["overall", "</b>a"])
    assert "<option value='width of &lt;/b&gt;a'>width of &lt;/b&gt;a</option>" in html


def test_running_means_and_plug_in_by_hand():
    inside = np.array([[True, True, False, True], [False, False, True, False]])
    losses, draw = np.array([1.0, 0.0, 1.0, 0.0]), np.array([0, 0, 1, 2])
    assert running_means(inside, losses, draw, 1)[0] == 0.5
    assert np.isnan(running_means(inside, losses, draw, 1)[1])
    assert running_means(inside, losses, draw, 3) == pytest.approx([1 / 3, 1])
    result = plug_in(
        np.array([2.0, 1.0]),
        np.array([4.0, 0.0]),
        np.array([10.0, 5.0]),
        np.array([[True, True], [False, False]]),
        np.array([0.25, 0.75]),
    )
    assert result == pytest.approx([(2 + 4 * 0.5) / 10, 0.2])


def test_lure_is_the_formula_of_the_paper():
    """R = 1/M sum v_m l_m, v_m = 1 + (N-M)/(N-m) (1/((N-m+1) q_m) - 1), for all and for a part."""
    rng = np.random.default_rng(0)
    total, part = 12, 5  # the first questions are the part
    loss, weight = rng.random(total), rng.random(total) + 0.1
    unseen, drawn, chances, masses = list(range(total)), [], [], []
    for _ in range(10):
        proposal = weight[unseen] / weight[unseen].sum()
        place = int(rng.choice(len(unseen), p=proposal))
        masses.append(proposal[np.array(unseen) < part].sum())
        chances.append(proposal[place])
        drawn.append(unseen.pop(place))
    hit = np.stack([np.ones(10, bool), np.array(drawn) < part])
    left = np.array([[total], [part]]) - np.cumsum(hit, axis=1) + hit
    even = left / np.maximum(np.stack([np.ones(10), masses]), 1e-300)
    result = lure(
        hit * loss[drawn],
        hit,
        scale=np.tile(1 / np.array(chances), (2, 1)),
        even=even,
        calls=np.array([total, part]),
        sizes=np.array([total, part]),
    )

    def by_paper(n: int, losses: Any, q: Any) -> float:
        count = len(losses)
        steps = [
            1 + (n - count) / (n - m) * (1 / ((n - m + 1) * q[m - 1]) - 1) if m < n else 1.0
            for m in range(1, count + 1)
        ]
        return float(np.dot(steps, losses) / count)

    q = np.array(chances)
    for count in (1, 4, 9, 10):
        assert result[0, count - 1] == pytest.approx(
            by_paper(total, loss[drawn[:count]], q[:count])
        )
        mine = [m for m in range(count) if hit[1, m]]
        if mine and len(mine) < part:
            own = [q[m] / masses[m] for m in mine]
            assert result[1, count - 1] == pytest.approx(
                by_paper(part, loss[[drawn[m] for m in mine]], own)
            )
        assert np.isnan(result[1, count - 1]) == (not mine)
    everything = lure(
        np.array([[1.0, 0.0]]),
        np.ones((1, 2), bool),
        scale=np.array([[5.0, 1.0]]),
        even=np.array([[2.0, 1.0]]),
        calls=np.array([2.0]),
        sizes=np.array([2.0]),
    )
    assert everything[0, -1] == pytest.approx(0.5)


def test_checkpoints_and_levels():
    assert levels_to(0.08) == [0.3, 0.2, 0.1, 0.08]
    counts = [n for n in range(1, 10_001) if is_checkpoint(n)]
    assert {50, 100, 200, 400, 800, 1600, 3200, 6400} < set(counts)
    assert len(counts) < 110


# -- peers --------------------------------------------------------------------------------


def flat(error: float, half: float) -> peers.Track:
    estimate = np.full(peers.MAX, error)
    return peers.Track(estimate, estimate - half, estimate + half)


def test_the_table_of_peers_by_hand():
    broken = flat(0.0, 0.1)
    broken.lower[150] = 0.01  # between the second mark and the third
    result = peers.table({"a": [flat(0.03, 0.05), flat(-0.04, 0.02)], "b": [broken], "c": "gone"})
    a = result[result["method"] == "a"].iloc[0]
    assert a["RMSE"] == pytest.approx(math.sqrt((0.03**2 + 0.04**2) / 2))
    assert a["bias"] == pytest.approx(-0.005)
    assert a["half-width"] == pytest.approx(0.035)
    assert a["covered"] == 0.5
    b = result[result["method"] == "b"]
    assert b["covered"].tolist() == [1, 1, 1, 1]
    assert b["always"].tolist() == [1, 1, 0, 0]
    shown = peers.wide(result, "RMSE", 4).set_index("method")
    assert shown.loc["c"].tolist() == ["gone", "", "", ""]
