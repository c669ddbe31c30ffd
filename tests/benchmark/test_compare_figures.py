"""The figures of a comparison, and its table of peers, by hand."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adaptive_vtt.benchmark import summary
from adaptive_vtt.benchmark.runs import is_checkpoint, levels_to, lure, peek, plug_in, running_means
from adaptive_vtt.benchmark.summary import certified_page
from adaptive_vtt.experiments.engine import peers
from tests.helpers.chromium import Browser, needs_chromium

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
        "certified": [True],
        "variance_ratio": 0.5,
        "predicts": strategy != "uniform",
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
    assert uniform["of uniform"] == 1
    assert neyman["calls to 0.2"] == 30
    assert neyman["calls to 0.1"] is None  # one of two did not get there
    assert neyman["of uniform"] is None
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


TOLD = "certify needed 0.465 to 0.536 times the calls of uniform questioning (5 repeats)"
SHORT = (
    "the budget is too small for {}: not every repeat was at +-0.1 after 100 calls; some 230 would "
    "do (--budget)"
)


@pytest.mark.parametrize(
    ("calls", "sentence"),
    [
        ({"certify": [50, 46, 54, 50, 50]}, TOLD),
        (
            {"certify": [50, 46, 120, 50, 90]},
            "5 repeats cannot tell certify from uniform questioning (some 7 repeats would)",
        ),
        (
            {"certify": [50, 46, 54, 50, 50], "random": [50, 50, 50, 46, 54]},
            "certify needed 0.451 to 0.553 times the calls of uniform questioning, random with "
            "predictions needed 0.451 to 0.553 times (5 repeats); 5 repeats cannot tell certify "
            "from random with predictions (nor would 100 repeats)",
        ),
        (
            {"certify": [50, 46, 54, 50, 50], "argmax": [None, 9, 9, 9, 9]},
            "certify needed 0.451 to 0.553 times the calls of uniform questioning (5 repeats); "
            + SHORT.format("argmax"),
        ),
        ({"certify": [None] * 5}, SHORT.format("certify")),
    ],
)
def test_a_comparison_concludes_in_one_sentence(
    calls: dict[str, list[int | None]], sentence: str
) -> None:
    assert summary.conclusion(counted(uniform=[100] * 5, **calls)) == sentence


def test_few_repeats_tell_nothing_and_many_strategies_take_more_of_them() -> None:
    few = counted(uniform=[100, 100], random=[60, 58], certify=[50, 46])
    alike = (
        "2 repeats cannot tell certify from uniform questioning (some 3 repeats would), random "
        "with predictions (some 3 repeats would), nor random with predictions from uniform "
        "questioning (some 3 repeats would)"
    )
    assert summary.conclusion(few) == alike
    one = counted(uniform=[100], certify=[50])
    assert summary.conclusion(one) == "1 repeat cannot tell certify from uniform questioning"
    unsure = {"uniform": [100] * 4, "certify": [60, 85, 70, 80]}
    assert summary.conclusion(counted(**unsure)).startswith("certify needed")
    rivals = {"a": [99] * 4, "b": [99] * 4, "c": [99] * 4}
    assert "cannot tell certify from uniform" in summary.conclusion(counted(**unsure, **rivals))


def test_every_strategy_is_compared_with_the_baseline() -> None:
    own = counted(uniform=[100] * 5, certify=[50, 46, 54, 50, 50], mine=[80, 76, 82, 84, 80])
    assert summary.conclusion(own) == (
        "certify needed 0.451 to 0.553 times the calls of uniform questioning and 0.58 to 0.666 "
        "times those of mine, mine needed 0.752 to 0.859 times (5 repeats)"
    )
    own = {"certify": [50] * 4, "random": [70, 71, 70, 71], "a.py:Mine": [80, 81, 80, 81]}
    told = summary.conclusion(counted(**own))
    assert re.search(
        r"certify needed .* those of random with .*, .* times those of a\.py:Mine", told
    )
    assert re.search(r"random \S+ predictions needed \S+ to \S+ times those of a\.py:Mine", told)
    unsure = counted(uniform=[100] * 3, mine=[99, 130, 60])
    assert summary.conclusion(unsure) == (
        "3 repeats cannot tell mine from uniform questioning (some 82 repeats would)"
    )


def test_no_budget_is_named_where_an_interval_never_shrank() -> None:
    runs = counted(uniform=[100], certify=[None])
    runs[1]["half_width"] = [0.5, 0.5, 0.5]
    assert summary.conclusion(runs) == SHORT.format("certify").partition("; ")[0]


def test_ratios_are_of_the_same_seeds() -> None:
    """Spaces that are hard with one seed are hard for all: pairs cancel what medians do not."""
    runs = counted(uniform=[100, 1000, 300], certify=[50, 600, 120])
    row = summary.certified_summary(runs).set_index("strategy").loc["certify"]
    assert row["of uniform"] == 0.5  # 120 / 300 is that of the medians
    assert summary.conclusion(counted(uniform=[None, 9], certify=[5, None])) == SHORT.format(
        "uniform questioning, certify"
    )


def test_the_page_concludes_and_says_who_chooses_by_chance() -> None:
    runs = counted(uniform=[100, 90], certify=[5, None], random=[80, 70])
    page = certified_page(runs, 0.1, 0.95, {})
    assert "2 repeats cannot tell random with predictions from uniform questioning" in page
    assert "not every repeat was at ±0.1 after 100 calls" in page
    assert "uniform (without predictions), random (with predictions)" in page


def test_rmse_stands_only_at_marks_that_every_run_reached():
    runs = planted_runs()
    assert summary.shared_marks(runs) == [50, 100]
    runs[0] = {**runs[0], "at": [1, 50, 90]}
    assert summary.shared_marks(runs) == [50]


def test_the_page_is_self_contained_and_safe_for_runs_that_fell_short():
    runs = planted_runs()
    table = summary.certified_summary(runs)
    page = certified_page(runs, 0.1, 0.95, {"strategies": table})
    assert "<script src=" not in page
    assert "https://" not in page
    assert "more than 100" in page


@pytest.mark.slow
@needs_chromium
def test_the_page_is_drawn_in_the_systems_colours_and_fits_a_phone(tmp_path: Path):
    hostile = "</script><img src=x onerror=alert(1)> %{y}"
    runs = [{**run, "strategy": hostile} for run in planted_runs()[2:]] + planted_runs()[:2]
    tables = {f"strategies of {hostile}": summary.certified_summary(runs)}
    (tmp_path / "page.html").write_text(certified_page(runs, 0.1, 0.95, tables))
    with Browser(tmp_path / "profile", 390, 2000) as browser:
        browser.scheme("dark")
        browser.open((tmp_path / "page.html").as_uri())
        drawn = "document.querySelectorAll('.chart[data-drawn]').length === 2"
        browser.until(drawn)
        assert browser.value("document.documentElement.scrollWidth") <= 390
        paper = browser.value("document.querySelector('#widths').layout.template.layout")
        assert paper["paper_bgcolor"] == "#1a1f26"
        texts = browser.value("document.querySelector('#widths').textContent")
        assert "<img src=x" in texts
        assert browser.value("document.images.length") == 0
        assert browser.complaints == []


def test_running_means_and_plug_in_by_hand():
    inside = np.array([[True, True, False, True], [False, False, True, False]])
    losses, draw = np.array([1.0, 0.0, 1.0, 0.0]), np.array([0, 0, 1, 2])
    assert running_means(inside, losses, draw, 1)[0] == 0.5
    assert np.isnan(running_means(inside, losses, draw, 1)[1])
    assert running_means(inside, losses, draw, 3) == pytest.approx([1 / 3, 1])
    found = plug_in(
        np.array([2.0, 1.0]),
        np.array([4.0, 0.0]),
        np.array([10.0, 5.0]),
        np.array([[True, True], [False, False]]),
        np.array([0.25, 0.75]),
    )
    assert found == pytest.approx([(2 + 4 * 0.5) / 10, 0.2])


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
    found = lure(
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
        assert found[0, count - 1] == pytest.approx(by_paper(total, loss[drawn[:count]], q[:count]))
        mine = [m for m in range(count) if hit[1, m]]
        if mine and len(mine) < part:
            own = [q[m] / masses[m] for m in mine]
            assert found[1, count - 1] == pytest.approx(
                by_paper(part, loss[[drawn[m] for m in mine]], own)
            )
        assert np.isnan(found[1, count - 1]) == (not mine)
    everything = lure(
        np.array([[1.0, 0.0]]),
        np.ones((1, 2), bool),
        scale=np.array([[5.0, 1.0]]),
        even=np.array([[2.0, 1.0]]),
        calls=np.array([2.0]),
        sizes=np.array([2.0]),
    )
    assert everything[0, -1] == pytest.approx(0.5)


def test_peeking_by_hand():
    losses = np.tile([0.0, 1.0], 60)
    inside, draw = np.ones((1, 120), bool), np.arange(120)

    def look(truth: float, goal: float) -> Any:
        return peek(
            inside,
            losses,
            draw,
            truth=np.array([truth]),
            sizes=np.array([1000.0]),
            goal=goal,
            alpha=0.05,
        )

    # 1.96 sqrt(.25 / (n - 1)) is .1 at n = 98: even counts have mean 1/2
    stopped = look(0.5, 0.1)
    assert stopped.calls == pytest.approx(97, abs=1)
    assert stopped.held
    assert not stopped.missed
    assert look(0.9, 0.1).missed
    assert look(0.9, 0.1).held is False
    assert look(0.5, 0.01).calls is None


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
    found = peers.table({"a": [flat(0.03, 0.05), flat(-0.04, 0.02)], "b": [broken], "c": "gone"})
    a = found[found["method"] == "a"].iloc[0]
    assert a["RMSE"] == pytest.approx(math.sqrt((0.03**2 + 0.04**2) / 2))
    assert a["bias"] == pytest.approx(-0.005)
    assert a["half-width"] == pytest.approx(0.035)
    assert a["covered"] == 0.5
    b = found[found["method"] == "b"]
    assert b["covered"].tolist() == [1, 1, 1, 1]
    assert b["always"].tolist() == [1, 1, 0, 0]
    shown = peers.wide(found, "RMSE", 4).set_index("method")
    assert shown.loc["c"].tolist() == ["gone", "", "", ""]


def test_a_peer_that_is_missing_is_named(monkeypatch):
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(peers, "import_module", missing)
    monkeypatch.setattr(
        peers,
        "pool",
        lambda seed: peers.Bench(
            "tiny",
            np.zeros((4, 1)),
            np.zeros((4, 1)),
            np.zeros((4, 1, 1)),
            ("blur",),
            (0,),
            (1,),
            images=np.zeros((4, 64)),
            shown=np.zeros((4, 1, 64)),
            digits=np.zeros(4),
            probable=np.zeros((4, 1, 10)),
        ),
    )
    assert peers.run(("ville, iid", 0)) == "not installed: ville"
    assert peers.run(("proeval", 0)) == "not installed: proeval.sampler"
