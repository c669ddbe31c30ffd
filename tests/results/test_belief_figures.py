"""Tables of what was believed, and the figures drawn of them."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptive_vtt as avtt
from adaptive_vtt.datasets import from_table
from adaptive_vtt.errors import InputError, JournalError
from adaptive_vtt.journal.belief_groups import believed, column
from adaptive_vtt.journal.rows import BeliefRow
from adaptive_vtt.results.beliefs import PLOTS, figures
from adaptive_vtt.results.beliefs.figures import Moments
from adaptive_vtt.results.outcomes import outcomes
from adaptive_vtt.results.result import Result, summarise
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.utils.figures import percent, span

EVIL = "<script>alert(1)</script><b>"
OPTIONS: dict[str, Any] = {
    "half_width": 0.02,
    "targets": ["overall", "relations", "relation-concepts", "severities", "concepts"],
    "budget": 28,
    "seed": 2,
    "self_taught": False,
}
NAMES = ["concept", "relation", "severity"]


def space() -> avtt.QuestionSpace:
    return avtt.QuestionSpace(
        tiny_dataset(20, 2), ["identity", "gaussian_noise"], severities=[1, 3]
    )


@pytest.fixture(scope="module")
def audit() -> avtt.Audit:
    made = avtt.Audit(space(), ScriptedModel(refuse=0.1), **OPTIONS)
    made.run()
    return made


@pytest.fixture(scope="module")
def result(audit: avtt.Audit) -> Result:
    return audit.result()


# -- tables --------------------------------------------------------------------------------


def test_cells_are_those_of_the_journal(audit: avtt.Audit, result: Result) -> None:
    table, rows = result.beliefs(), audit.journal.beliefs()
    first = ["draws", "predicted", "sd", "spread", "drawn", "asked", "failed", "lower", "upper"]
    assert [*table.columns] == [*NAMES, *first]
    assert table.groupby("draws")["drawn"].sum().to_dict() == {row.draws: row.draws for row in rows}
    assert len(table) == 2 * 3 * len(rows)
    assert table["draws"].drop_duplicates().tolist() == [row.draws for row in rows]
    last = table[table["draws"] == 28]
    assert last["predicted"].tolist() == pytest.approx(rows[-1].figures["predicted"], abs=1e-12)
    assert last["sd"].tolist() == rows[-1].figures["sd"][-6:]
    asked = outcomes(audit.journal)
    for cell in last.itertuples():
        here = asked[(asked[NAMES] == [cell.concept, cell.relation, cell.severity]).all(axis=1)]
        assert (cell.asked, cell.failed) == (len(here), (here["loss"] >= 0.5).sum())


@pytest.mark.parametrize(
    ("of", "groups"),
    [("overall", 1), ("severity", 3), ("relation-concept", 4)],
)
def test_groups_are_means_of_their_cells(result: Result, of: Any, groups: int) -> None:
    table, cells = result.beliefs(of), result.beliefs()
    about = believed(result.source._journal.facts())  # type: ignore[union-attr]
    assert about is not None
    weights = list(about.sizes)
    cells = cells[cells["draws"] == 28].assign(
        weight=weights, total=lambda c: c["weight"] * c["predicted"]
    )
    last = table[table["draws"] == 28]
    assert len(last) == groups
    for row in last.to_dict("records"):
        names = [name for name in NAMES if not pd.isna(row[name])]
        inside = cells[(cells[names] == [row[name] for name in names]).all(axis=1)]
        mean = inside["total"].sum() / inside["weight"].sum()
        assert row["predicted"] == pytest.approx(mean, abs=1e-9)
        variance = np.average(inside["spread"] ** 2, weights=inside["weight"])
        assert row["spread"] == pytest.approx(variance**0.5, abs=1e-9)
        assert row["asked"] == inside["asked"].sum()
        assert row["sd"] <= inside["sd"].max() + 1e-9


def test_certified_intervals_stand_next_to_predictions(result: Result) -> None:
    targets = result.targets.set_index("target")
    for of, kind in (
        ("overall", "overall label error"),
        ("relation", "relation identity: label error"),
    ):
        name = next(n for n in targets.index if n.startswith(kind))
        last = result.beliefs(of).query("draws == 28")  # type: ignore[arg-type]
        last = last[last["relation"].isna() | (last["relation"] == "identity")]
        assert [*last[["lower", "upper"]].iloc[0]] == [*targets.loc[name, ["lower", "upper"]]]
    cells = result.beliefs().query("draws == 28 and relation == 'identity'")
    by_concept = result.beliefs("relation-concept").query("draws == 28 and relation == 'identity'")
    assert cells["lower"].tolist() == by_concept["lower"].tolist(), "identity has one severity"
    noisy = result.beliefs().query("relation != 'identity'")
    assert noisy["lower"].isna().all(), "no target has these questions alone"
    first = result.beliefs("overall").iloc[0]
    assert first["upper"] - first["lower"] > 0.5


def test_images_and_predictions(audit: avtt.Audit, result: Result) -> None:
    images, asked = result.beliefs("images"), outcomes(audit.journal)
    last = images[images["draws"] == 28]
    assert last["sample"].tolist() == [audit.space.dataset.sample_id(k) for k in range(20)]
    assert last["asked"].tolist() == [(asked["sample"] == name).sum() for name in last["sample"]]
    assert last[["x", "y", "predicted", "sd"]].notna().all(axis=None)
    rows = result.beliefs("predictions")
    draws = {d.draw: d for d in audit.journal.draws()}
    assert rows["predicted"].tolist() == [draws[k].why["predicted_loss"] for k in rows["draw"]]
    losses = dict(zip(asked["question"], asked["loss"], strict=True))
    assert rows["loss"].tolist() == [losses[draws[k].question] for k in rows["draw"]]


def test_what_is_damaged_or_unknown_is_refused(audit: avtt.Audit, result: Result) -> None:
    with pytest.raises(InputError, match="unknown table 'cells'; did you mean 'cell'"):
        result.beliefs("cells")  # type: ignore[arg-type]
    row = BeliefRow(8, {"predicted": [0.5, "x"], "sd": [1]})
    for name in ("predicted", "sd"):
        with pytest.raises(JournalError, match=f"after 8 draws, {name}: expected a list of 2"):
            column(row, name, 2)
    with pytest.raises(JournalError, match=r"fact 'beliefs', sizes\.0: Input should be"):
        believed({"beliefs": {"sizes": ["x"], "questions": 1, "samples": [], "names": []}})
    with pytest.raises(InputError, match="expected a result with its journal"):
        summarise(audit.journal).beliefs()


# -- figures -------------------------------------------------------------------------------


def test_the_surface_has_the_numbers_of_the_table(result: Result) -> None:
    table = result.beliefs("relation-concept").query("draws == 28")
    heat = result.plot("beliefs").data[0]
    cells = {(r.concept, r.relation): r for r in table.itertuples()}
    for y, row in zip(heat.y, heat.z, strict=True):
        assert [*row] == [cells[y, x].predicted for x in heat.x]
    menu = {b.label: b.args[0] for b in result.plot("beliefs").layout.updatemenus[0].buttons}
    assert [*menu] == [*figures.SHOWN.values()]
    for y, row in zip(heat.y, menu["questions asked"]["z"][0], strict=True):
        assert [*row] == [cells[y, x].asked for x in heat.x]
    at = cells[heat.y[0], heat.x[0]]
    text = heat.text[0][0]
    for words in (f"{at.failed} of {at.asked}", percent(at.predicted), span(at.lower, at.upper)):
        assert words in text
    one = result.plot("beliefs", "gaussian_noise").data[0]
    assert [*one.x] == ["1", "3"]


@pytest.mark.slow
def test_curves_have_bands_dots_and_whiskers(result: Result) -> None:
    """Five traces a panel, a panel per relation: the second is that of the noise."""
    table = result.beliefs("severity").query("draws == 28 and relation == 'gaussian_noise'")
    figure = result.plot("concept")
    assert [note.text for note in figure.layout.annotations] == ["identity", "gaussian_noise"]
    mean, raw, whisker, low, high = figure.data[5:]
    assert [*mean.y] == table["predicted"].tolist()
    top = (table["predicted"] + 1.96 * table["sd"]).clip(0, 1) - table["predicted"]
    bottom = table["predicted"] - (table["predicted"] - 1.96 * table["sd"]).clip(0, 1)
    assert np.allclose(mean.error_y.array, top)
    assert np.allclose(mean.error_y.arrayminus, bottom)
    assert np.allclose(raw.y, table["failed"] / table["asked"])
    assert np.allclose(np.add(whisker.y, whisker.error_y.array), table["upper"])
    whole = result.beliefs("relation").query("draws == 28 and relation == 'gaussian_noise'")
    assert [*low.y, *high.y] == [*whole["lower"]] * 2 + [*whole["upper"]] * 2
    cells = result.beliefs().query("draws == 28 and relation == 'gaussian_noise'")
    name = cells["concept"].iloc[0]
    mine = cells[cells["concept"] == name]
    assert [*result.plot("concept", name).data[5].y] == mine["predicted"].tolist()
    by_concept = result.plot("relation", "gaussian_noise")
    assert [*by_concept.data[0].y] == mine["predicted"].tolist()
    assert result.plot("relation") == by_concept, "the last one, where none is named"
    with pytest.raises(InputError, match=f"unknown concept '{name}s'; did you mean '{name}'"):
        result.plot("concept", f"{name}s")
    with pytest.raises(InputError, match="plot 'images': expected nothing after the name"):
        result.plot("images", name)


def test_dots_on_the_surface_are_the_draws_since_the_moment_before(result: Result) -> None:
    """None where none was made, and the larger the more there were."""
    moments = Moments.read("relation-concept", result.beliefs("relation-concept"))
    before, now = (np.array(moments.columns["drawn"][k]) for k in (-2, -1))
    assert moments.columns["fresh"][-1] == (now - before).tolist()
    assert sum(now - before) == moments.draws[-1] - moments.draws[-2]
    places = {group[:2]: k for k, group in enumerate(moments.groups)}
    dots = result.plot("beliefs").data[1]
    sizes = dict(zip(zip(dots.y, dots.x, strict=True), dots.marker.size, strict=True))
    for group, k in places.items():
        assert (sizes[group] > 0) == (now[k] > before[k])
    few = Moments.read("cell", result.beliefs(), most=12)
    assert (len(few.draws), few.draws[-1]) == (2, 28)


def test_moments_are_read_without_pyarrow_too(result: Result) -> None:
    """Then pandas keeps texts in NumPy's arrays, and hands them out read-only."""
    table = result.beliefs("relation-concept")
    with pd.option_context("mode.string_storage", "python"):
        plain = pd.DataFrame({name: values.tolist() for name, values in table.items()})
        assert not np.asarray(plain["concept"], object).flags.writeable
        assert Moments.read("cell", plain) == Moments.read("cell", table)


def test_the_gain_is_that_of_predictions_over_the_plain_rate() -> None:
    loss = np.tile([0.0, 1.0], 50)
    table = pd.DataFrame({"draw": range(100), "predicted": 0.8 * loss + 0.1, "loss": loss})
    assert figures.gain(table).startswith("Mean squared error 0.010 over 100 calls")
    assert "100 calls are worth 2" in figures.gain(table)
    assert "saved no calls" in figures.gain(table.assign(predicted=1 - loss))
    assert figures.gain(table[:0]).startswith("No draw has")


# -- audits of other kinds, and names that attack ------------------------------------------


def test_hostile_names_stay_text() -> None:
    labels = pd.DataFrame({EVIL: [0, 1] * 4}, index=[f"{EVIL}{k}" for k in range(8)])
    data = from_table([np.zeros((4, 4), np.uint8)] * 8, labels)
    space = avtt.QuestionSpace(data)
    audit = avtt.Audit(space, ScriptedModel(), half_width=0.1, budget=3, seed=1)
    audit.run()
    result = audit.result()
    for name in PLOTS:
        about = {"concept": EVIL, "relation": "identity"}.get(name)
        text = json.dumps(result.plot(name, about).to_plotly_json(), default=str)
        assert "<script" not in text, name
        assert "<b>" not in text, name
        assert name == "calibration" or "&lt;script" in text, name


def test_an_audit_that_explores_says_that_nothing_is_predicted() -> None:
    result = avtt.Audit(space(), ScriptedModel(), budget=6, seed=1).run()
    assert result.beliefs()["predicted"].isna().all()
    assert result.beliefs("uncertainty")["uncertainty"].between(0, 1).all()
    for name in ("beliefs", "concept", "images", "through"):
        notes = [n.text for n in result.plot(name).layout.annotations if n.name == "note"]
        assert notes == [figures.NOTHING.strip()], name
    heat, last = result.plot("beliefs").data[0], result.beliefs("relation-concept").iloc[-4:]
    rates = {(r.concept, r.relation): r.failed / r.asked for r in last.itertuples()}
    assert heat.z[0][0] == rates[heat.y[0], heat.x[0]]
    assert result.plot("uncertainty").data
    assert "No draw has" in result.plot("calibration").layout.annotations[0].text
