"""The report of a certified audit: its intervals, widths, costs, and what disagrees with them."""

import re
from dataclasses import replace
from html import unescape
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import adaptive_vtt as avtt
from adaptive_vtt.certify.verify import recompute
from adaptive_vtt.journal import Journal, MemoryJournal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.results.report import render
from adaptive_vtt.results.report.evidence import Evidence
from adaptive_vtt.results.report.headline import verdict_section
from adaptive_vtt.results.report.rates import implied_rates
from adaptive_vtt.results.report.section import percent, span
from adaptive_vtt.results.result import summarise
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Answer
from tests.helpers.report_pages import CERTIFIED, Tags, audit, block

# -- certificates ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certified() -> Journal:
    """An audit that certifies, of 40 calls and 10 targets."""
    options: dict[str, Any] = {"targets": ["overall", "concepts", "relations"], "budget": 40}
    options |= {"half_width": 0.3, "at_most": 0.6, "unanswered": "both", "surrogate": False}
    model = ScriptedModel(answers="one", refuse=0.1)
    return audit(tiny_dataset(), model, ["identity", "rotation", "gaussian_noise"], **options)


@pytest.fixture(scope="module")
def page(certified: Journal) -> str:
    return render(certified)


def rows_of(page: str, label: str) -> dict[str, list[str]]:
    """The cells of a table, as written in the page, by the name of their row."""
    match = re.search(rf'aria-label="{label}">(.*?)</table>', page, re.DOTALL)
    assert match is not None
    rows = re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', match[1], re.DOTALL)
    return {
        unescape(name.split(" <span")[0]): re.findall(r"<td(.*?)</td>", cells, re.DOTALL)
        for name, cells in rows
    }


def values_of(cell: str) -> list[float]:
    return [float(v) for v in re.findall(r'data-\w+="(.*?)"', cell)]


@pytest.mark.parametrize("answered", [30, pytest.param(21, marks=pytest.mark.slow)])
def test_certified_intervals_are_those_of_the_result(answered: int) -> None:
    """Of an audit that ended, and of one that still runs."""
    space, journal = avtt.QuestionSpace(tiny_dataset(), ["identity", "rotation"]), MemoryJournal()
    model = ScriptedModel(answers="one", refuse=0.1)
    options: dict[str, Any] = {"half_width": 0.05, "unanswered": "both", "surrogate": False}
    running = avtt.Audit(space, model, budget=30, journal=journal, **options)
    while calls := running.ask(6):
        for call in calls[: max(answered - len(journal.calls()), 0)]:
            running.tell(call, model.ask([call.prompt])[0])
        if len(journal.calls()) == answered < 30:
            break
    expected = summarise(journal).targets.set_index("target")
    page = render(journal)
    assert "with their predictions against as many uniform ones without" in page
    rows = rows_of(page, "Certified targets")
    assert sorted(rows) == sorted(expected.index)
    for name, cells in rows.items():
        row = expected.loc[name]
        assert values_of(cells[1]) == [row["questions"]]
        assert values_of(cells[4]) == pytest.approx([row["upper"], row["lower"]], abs=1e-7)
        assert values_of(cells[5]) == pytest.approx([row["half_width"]], abs=1e-7)
        assert ("not yet" in cells[6]) != row["certified"]
        if answered == 30:  # as journaled, to the last digit
            assert values_of(cells[4]) == [row["upper"], row["lower"]]
            known = [row["size"], row["estimate"], row["variance_ratio"], row["effective_draws"]]
            shown = [values_of(cells[i])[0] for i in (0, 2, 7, 8)]
            assert shown == pytest.approx(known)


def test_widths_are_what_the_rows_come_to(certified: Journal, page: str) -> None:
    tracks, figure = Evidence(certified).run.history, block(page, "widths-chart-data")["linear"]
    widest, certificate = figure["data"][-1], read_facts(certified.facts()).certificate
    for moment in (0, 1, 20, 40):
        rows = recompute(certificate, certified.draws()[:moment], certified.calls())
        for end in ("lower", "upper"):
            shown = [getattr(track, end)[moment] for track in tracks]
            assert shown == pytest.approx([getattr(row, end) for row in rows], abs=1e-9)
        assert widest["x"][moment] == moment
        wide = max((r.upper - r.lower) / 2 for r in rows)
        assert 100 * wide - 1e-6 <= widest["y"][moment] < 100 * wide + 0.01 + 1e-6  # rounded up
    assert figure["layout"]["shapes"][0]["y0"] == 30


def test_guarantee_is_given_only_with_certificates(page: str) -> None:
    sentence = (
        "With probability at least 95 % all 10 intervals hold at once, at every moment of the "
        "audit, although the questions were chosen adaptively"
    )
    tags = Tags(page)
    assert sentence in tags.text
    assert "count as right in the lower end" in tags.text
    assert [a["id"] for t, a in tags.tags if t == "section"] == CERTIFIED
    plain = Tags(render(audit(tiny_dataset(), ScriptedModel(), budget=3)))
    assert "With probability" not in plain.text
    assert not plain.with_id("certified")
    assert "Nothing here is certified" in plain.text


def test_the_worst_targets_are_those_with_the_highest_lower_bounds(
    certified: Journal, page: str
) -> None:
    first = page[page.index('class="worst"') : page.index("Next steps")]
    named = [unescape(name) for name in re.findall(r"<h4>(.*?)</h4>", first)]
    rows = summarise(certified).targets
    rest = rows[(rows["kind"] != "overall") & ~rows["emptied"].astype(bool)]
    lower = rest.set_index("target")["lower"]
    assert lower[named].tolist() == sorted(lower, reverse=True)[:3]
    wrong = [k for item in block(page, "failures-data") for k in item["targets"]]
    for place, count in re.findall(r"failures\?target=(\d+)\">(\d+) failing", first):
        assert wrong.count(int(place)) == int(count)
    assert first.count("<img") == 6


def test_of_equal_lower_bounds_the_headline_has_the_highest_estimate(certified: Journal) -> None:
    """Where little goes wrong all lower bounds are 0; a headline of 0 % would not be the worst."""
    evidence = Evidence(certified)
    apart = [s for s in evidence.standings if s.kind not in ("overall", "misclassified")][:3]
    shares = zip(apart, (0.0, 0.04, 0.01), strict=True)
    changed = [replace(s, lower=0.0, estimate=share, upper=0.4) for s, share in shares]
    evidence.__dict__["standings"] = changed  # a cached property
    first = verdict_section(evidence).html
    assert f"<b>{span(0.0, 0.4)}</b>" in first
    assert f"; best guess {percent(0.04)}" in first


@pytest.mark.parametrize("upper", [0.4, 0.9])
def test_a_rate_that_is_hardly_known_is_shown_by_its_interval_and_called_no_worst(
    certified: Journal, upper: float
) -> None:
    evidence = Evidence(certified)
    apart = [s for s in evidence.standings if s.kind != "overall" and "identity" not in s.name]
    changed = [replace(s, lower=0.004, estimate=0.2, upper=upper) for s in apart]
    evidence.__dict__["standings"] = changed  # a cached property
    first, known = verdict_section(evidence).html, upper < 0.5
    assert f"<b>{span(0.004, upper)}</b>" in first
    assert (f"best guess {percent(0.2)}" in first) == known
    assert ("Hardly known yet: " in first) != known
    assert ("the worst of" in first) == known


def test_failures_belong_to_the_targets_of_their_wrong_questions(
    certified: Journal, page: str
) -> None:
    """Each call is one question here, so targets follow from its concept, side and relation."""
    evidence = Evidence(certified)
    ids = evidence.certificate.ids
    for item in block(page, "failures-data"):
        (line,) = item["lines"]
        relation, concept = evidence.relations[item["relation"]], evidence.concepts[line["key"]]
        expected = [
            k
            for k, one in enumerate(ids)
            if one.kind == "overall"
            or (one.kind == "relation" and one.relation == relation)
            or (one.kind == "concept" and (one.concept, one.side) == (concept, line["truth"]))
        ]
        assert item["targets"] == expected


class Greedy:
    """Asks mostly about every twentieth sample."""

    def weights(self, candidates: Any, belief: Any) -> torch.Tensor:
        return torch.where(candidates.question % 20 == 0, 200.0, 1.0)


@pytest.mark.slow
def test_beliefs_outside_of_their_interval_are_flagged() -> None:
    """The model misses whatever is there; the strategy asks of it far more often than it is."""
    labels = pd.DataFrame({"rare": np.arange(4000) % 20 == 0}).astype(int)
    dataset = avtt.datasets.from_table(None, labels)
    model = ScriptedModel(answers="one")
    model.ask = lambda prompts: [Answer((0.1,)) for _ in prompts]  # type: ignore[method-assign]
    options = {"targets": ["overall"], "half_width": 0.1, "budget": 60, "surrogate": False}
    journal = audit(dataset, model, ["identity"], strategy=Greedy(), **options)
    evidence = Evidence(journal)
    (row,), (track,) = evidence.standings, evidence.run.history
    assert row.lower <= 0.05 <= row.upper < track.mean
    (cells,) = rows_of(render(journal), "Certified targets").values()
    assert "outside of the interval" in cells[-1]
    assert values_of(cells[-1]) == pytest.approx([track.mean])


@pytest.mark.slow
def test_answer_gp_implies_rates() -> None:
    labels = pd.DataFrame({"c": [0, 1] * 40})
    dataset = avtt.datasets.from_table(None, labels)
    model = ScriptedModel(answers="one")
    model.ask = lambda prompts: [Answer((0.02,)) for _ in prompts]  # type: ignore[method-assign]
    options = {"targets": ["concepts"], "surrogate": False}
    journal = audit(dataset, model, ["identity"], half_width=0.05, **options)
    evidence = Evidence(journal)
    rates = {s.name: implied_rates(evidence)[s.place] for s in evidence.standings}
    assert rates["c: miss rate"] > 0.9
    assert rates["c: false-alarm rate"] < 0.5
