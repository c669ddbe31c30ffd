"""The report: whole, safe, honest, and rebuilt from the journal alone."""

import json
import os
import re
import shutil
import subprocess
from base64 import b64encode
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import adaptive_vtt as avtt
from adaptive_vtt.certify.verify import Interval, recompute
from adaptive_vtt.errors import InputError, JournalError
from adaptive_vtt.journal import Journal, MemoryJournal, SQLiteJournal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.models import PythonModel
from adaptive_vtt.models.demo.fashion_cnn import predict
from adaptive_vtt.oracles import Consistency
from adaptive_vtt.report import render, write_report
from adaptive_vtt.report.counts import FIGURES
from adaptive_vtt.report.evidence import Evidence
from adaptive_vtt.report.section import duration, figure, percent, plain, span
from adaptive_vtt.results import confusion, outcomes, summarise
from adaptive_vtt.testing import ScriptedModel, TiledDataset, tiny_dataset
from adaptive_vtt.types import Answer, Unanswered

EVIL = "<script>alert(1)</script>"
SECTIONS = ["overview", "beliefs", "uncertainty", "counts", "gallery", "asked"]
CERTIFIED = ["overview", "certified", "derived", "widths", "cost", "spending", *SECTIONS[1:]]


class Tags(HTMLParser):
    """All start tags with their attributes, and the text outside of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def with_id(self, id: str) -> bool:
        return any(attributes.get("id") == id for _, attributes in self.tags)


def block(page: str, id: str) -> Any:
    """The JSON that the page's scripts read by ``id``."""
    found = re.search(rf'<script type="application/json" id="{id}">(.*?)</script>', page)
    assert found is not None
    return json.loads(found[1])


def own(page: str) -> str:
    """The page without plotly.js, which is nobody's business here."""
    longest = max(re.findall(r"<script>.*?</script>", page, re.DOTALL), key=len)
    return page.replace(longest, "")


def audit(dataset: Any, model: Any, relations: list[str] | None = None, **options: Any) -> Journal:
    """The journal of an audit run to its end."""
    space = avtt.QuestionSpace(dataset, relations or avtt.relations.names())
    journal = MemoryJournal()
    avtt.Audit(space, model, journal=journal, **options).run()
    return journal


@pytest.fixture(scope="module")
def fashion(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of a 300-call audit of the bundled model."""
    path = tmp_path_factory.mktemp("fashion") / "journal.db"
    space = avtt.QuestionSpace(avtt.datasets.fashion(), avtt.relations.names())
    model = avtt.models.PythonModel(predict, name="fashion-cnn")
    with avtt.Audit(space, model, budget=300, seed=0, journal=path) as running:
        running.run()
    return path


@pytest.fixture(scope="module")
def page(fashion: Path) -> str:
    return render(SQLiteJournal(fashion))


@pytest.fixture(scope="module")
def table(fashion: Path) -> pd.DataFrame:
    return outcomes(SQLiteJournal(fashion))


# -- one file, from the journal alone -----------------------------------------------------


def test_nothing_is_loaded_from_outside(page: str) -> None:
    tags = Tags(page).tags
    for tag, attributes in tags:
        assert tag not in ("link", "iframe", "object", "embed", "base", "form")
        for name in ("src", "href", "srcset", "data", "action", "poster"):
            value = attributes.get(name) or ""
            assert not value or value.startswith(("#", "data:image/png;base64,")), (tag, value)
    assert "@import" not in own(page)
    assert "url(" not in own(page)
    policy = [a["content"] for t, a in tags if t == "meta" and "http-equiv" in a]
    assert len(policy) == 1
    assert "default-src 'none'" in (policy[0] or "")


def test_plotly_stands_in_the_page_once(page: str) -> None:
    from plotly.offline import get_plotlyjs

    assert page.count(get_plotlyjs()) == 1


def test_page_is_small_enough_to_send(page: str) -> None:
    assert len(page.encode()) < 8_000_000


def test_all_sections_stand_in_order(page: str) -> None:
    ids = [attributes.get("id") for tag, attributes in Tags(page).tags if tag == "section"]
    links = [a["href"] for t, a in Tags(page).tags if t == "a" and "class" not in a]
    assert ids == SECTIONS
    assert links == [f"#{id}" for id in SECTIONS]


def test_journal_file_alone_is_enough(fashion: Path, page: str, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere.db"
    shutil.copy(fashion, moved)
    assert render(SQLiteJournal(moved, must_exist=True)) == page


def test_no_path_of_this_machine_is_told(page: str, fashion: Path) -> None:
    assert str(fashion.parent) not in page
    assert os.getcwd() not in page


# -- the figures ----------------------------------------------------------------------------


def test_headline_states_the_totals(page: str, fashion: Path, table: pd.DataFrame) -> None:
    text = Tags(page).text
    assert "fashion-cnn on fashion-mnist-longtail" in text
    assert "Stopped: 300 calls were made." in text
    assert f"{len(table):,} of {len(table):,} asked" in text
    assert "Raw sample figures: the questions were chosen adaptively" in text


def test_worst_findings_are_those_of_the_outcomes(page: str, table: pd.DataFrame) -> None:
    sides = table.groupby(["concept", "truth"])["loss"].agg(["mean", "sum", "count"])
    worst = sides[sides["count"] >= 10].sort_values("mean").iloc[-1]
    concept, truth = worst.name
    side = "present" if truth else "absent"
    wrong, count = int(worst["sum"]), int(worst["count"])
    sentence = f"{concept} where it is {side}: wrong in {wrong} of {count} questions"
    assert sentence in Tags(page).text


def test_table_agrees_with_confusion(page: str, table: pd.DataFrame) -> None:
    expected = confusion(table, "concept")
    rows = re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', page, re.DOTALL)
    assert [name for name, _ in rows] == list(avtt.datasets.fashion().concepts)
    for name, cells in rows:
        values = [float(v) for v in re.findall(r'data-value="(.*?)"', cells)]
        row = expected.loc[name]
        assert values[0] == row["tn"] + row["fp"]
        assert values[1] == row["fn"] + row["tp"]
        assert values[2:7] == row[["tn", "fp", "fn", "tp", "unanswered"]].tolist()
        loss = table[table["concept"] == name]["loss"].mean()
        figures = [loss, *row[list(FIGURES[1:])].astype(float)]
        assert values[7:] == pytest.approx(figures, nan_ok=True)


@pytest.mark.parametrize("concept", [None, "bag"])
def test_map_agrees_with_confusion(page: str, table: pd.DataFrame, concept: str | None) -> None:
    data = block(page, "map-data")
    part = table if concept is None else table[table["concept"] == concept]
    names = avtt.datasets.fashion().concepts
    cells = data["cells"]["all" if concept is None else str(names.index(concept))]
    expected = confusion(part, ["relation", "severity"])
    assert len(cells) == len(expected)
    for relation, severity, *values in cells:
        key = data["names"][relation], data["severities"][severity]
        row = expected.loc[key]
        assert values[:5] == row[["tn", "fp", "fn", "tp", "unanswered"]].tolist()
        figures = [np.nan if v is None else v for v in values[6:]]
        assert figures == pytest.approx(
            row[list(FIGURES[1:])].astype(float).tolist(), abs=1e-4, nan_ok=True
        )


def test_beliefs_count_every_answer(page: str, fashion: Path, table: pd.DataFrame) -> None:
    data = block(page, "beliefs-data")
    concepts = SQLiteJournal(fashion).facts()["space"]["concepts"]
    for concept, part in table.groupby("concept", sort=False):
        place = concepts.index(concept)
        assert sum(count for _, count in data["hits"][place]) == len(part)
        expected = confusion(part, "concept").iloc[0][["tn", "fp", "fn", "tp"]]
        assert data["quarters"][place] == expected.astype(int).tolist()


@pytest.mark.parametrize("answers", ["all", "one"])
def test_uncertainty_is_what_the_audit_saw(answers: Any) -> None:
    space = avtt.QuestionSpace(tiny_dataset(8, 2), ["identity", "rotation"])
    model = ScriptedModel(answers=answers, refuse=0.1)
    running = avtt.Audit(space, model, budget=20, journal=(journal := MemoryJournal()))
    seen = [running.state()]
    while calls := running.ask():
        running.tell(calls[0], model.ask([calls[0].prompt])[0])
        seen.append(running.state())
    replay = Evidence.of(journal).replay
    assert replay.questions.tolist() == [s.questions for s in seen]
    assert np.allclose(replay.uncertainty, [s.uncertainty for s in seen], equal_nan=True)
    traces = {
        t["name"]: t for t in block(render(journal), "uncertainty-chart-data")["calls"]["data"]
    }
    assert traces["mean"]["x"] == list(range(21))
    assert traces["mean"]["y"] == pytest.approx([s.mean for s in seen], abs=1e-4)
    assert traces["most uncertain side"]["y"] == pytest.approx([s.widest for s in seen], abs=1e-4)


def test_long_audits_are_measured_at_200_moments(page: str) -> None:
    views = block(page, "uncertainty-chart-data")
    assert len(views["questions"]["data"][0]["x"]) == 200
    assert views["calls"]["data"][0]["x"][-1] == 300


def test_threshold_is_drawn_where_a_rule_names_one() -> None:
    rule = avtt.stopping.UncertaintyBelow(0.4) | avtt.stopping.MaxQuestions(5)
    journal = audit(tiny_dataset(), ScriptedModel(), stop=rule)
    layout = block(render(journal), "uncertainty-chart-data")["calls"]["layout"]
    assert [shape["y0"] for shape in layout["shapes"]] == [0.4]


# -- certificates ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certified() -> Journal:
    """An audit that certifies, of 60 calls and 10 targets."""
    options = {"targets": ["overall", "concepts", "relations"], "unanswered": "both"}
    options["surrogate"] = False
    model = ScriptedModel(answers="one", refuse=0.1)
    relations = ["identity", "rotation", "gaussian_noise"]
    return audit(
        tiny_dataset(), model, relations, budget=60, half_width=0.3, at_most=0.6, **options
    )


def rows_of(page: str, label: str) -> dict[str, list[str]]:
    """The cells of a table, as written in the page, by the name of their row."""
    found = re.search(rf'aria-label="{label}">(.*?)</table>', page, re.DOTALL)
    assert found is not None
    rows = re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', found[1], re.DOTALL)
    return {
        unescape(name.split(" <span")[0]): re.findall(r"<td(.*?)</td>", cells, re.DOTALL)
        for name, cells in rows
    }


def values_of(cell: str) -> list[float]:
    return [float(v) for v in re.findall(r'data-\w+="(.*?)"', cell)]


@pytest.mark.parametrize("answered", [60, 41, 0])
def test_certified_intervals_are_those_of_the_result(answered: int) -> None:
    """Of an audit that ended, of one that still runs, of one that has heard nothing."""
    space = avtt.QuestionSpace(tiny_dataset(), ["identity", "rotation"])
    model = ScriptedModel(answers="one", refuse=0.1)
    running = avtt.Audit(
        space,
        model,
        budget=60,
        half_width=0.05,
        unanswered="both",
        surrogate=False,
        journal=(journal := MemoryJournal()),
    )
    while calls := running.ask(6):
        for call in calls[: max(answered - model_calls(journal), 0)]:
            running.tell(call, model.ask([call.prompt])[0])
        if model_calls(journal) == answered and answered < 60:
            break
    expected = summarise(journal).targets.set_index("target")
    page = render(journal)
    rows = rows_of(page, "Certified targets")
    assert sorted(rows) == sorted(expected.index)
    for name, cells in rows.items():
        row = expected.loc[name]
        assert values_of(cells[1]) == [row["questions"]]
        assert values_of(cells[3]) == pytest.approx([row["upper"], row["lower"]], abs=1e-7)
        assert values_of(cells[4]) == pytest.approx([row["half_width"]], abs=1e-7)
        assert ("not yet" in cells[5]) != row["certified"]
        if answered == 60:  # as journaled, to the last digit
            assert values_of(cells[3]) == [row["upper"], row["lower"]]
            known = [row["size"], row["estimate"], row["variance_ratio"], row["effective_draws"]]
            found = [values_of(cells[i])[0] for i in (0, 2, 6, 7)]
            assert found == pytest.approx(known)


def recomputed(journal: Journal, draws: int | None = None) -> list[Interval]:
    """The intervals after so many draws, or all."""
    certificate = read_facts(journal.facts()).certificate
    return recompute(certificate, journal.draws()[:draws], journal.calls())


def model_calls(journal: Journal) -> int:
    return len(journal.calls())


@pytest.mark.parametrize("moment", [0, 1, 30, 60])
def test_widths_are_what_the_rows_come_to(certified: Journal, moment: int) -> None:
    tracks = Evidence.of(certified).history
    rows = recomputed(certified, moment)
    assert [t.lower[moment] for t in tracks] == pytest.approx([r.lower for r in rows], abs=1e-9)
    assert [t.upper[moment] for t in tracks] == pytest.approx([r.upper for r in rows], abs=1e-9)
    figure = block(render(certified), "widths-chart-data")["linear"]
    widest = figure["data"][-1]
    assert widest["x"][moment] == moment
    wide = max((r.upper - r.lower) / 2 for r in rows)
    assert widest["y"][moment] == pytest.approx(wide, abs=1e-4)
    assert figure["layout"]["shapes"][0]["y0"] == 0.3


def test_long_histories_are_exact_over_their_chunks() -> None:
    dataset = TiledDataset([[0], [1], [0]], 3000)
    model = ScriptedModel(answers="one")
    options = {"targets": ["overall", "concepts"], "surrogate": False, "candidates": 32}
    journal = audit(dataset, model, ["identity"], budget=300, half_width=0.01, **options)
    tracks, rows = Evidence.of(journal).history, recomputed(journal)
    assert [t.lower[-1] for t in tracks] == pytest.approx([r.lower for r in rows], abs=1e-9)
    assert [t.upper[-1] for t in tracks] == pytest.approx([r.upper for r in rows], abs=1e-9)
    stated = journal.facts()["intervals"]
    assert [t.estimate for t in tracks] == pytest.approx([r["estimate"] for r in stated])


def test_guarantee_is_given_only_with_certificates(certified: Journal, page: str) -> None:
    sentence = (
        "With probability at least 95 % all 10 intervals hold at once, at every moment of the audit, "
        "although the questions were chosen adaptively"
    )
    tags = Tags(render(certified))
    assert sentence in tags.text
    assert "count as right in the lower end" in tags.text
    assert [a["id"] for t, a in tags.tags if t == "section"] == CERTIFIED
    assert "With probability" not in Tags(page).text
    assert "certified" not in Tags(page).text.lower()


def test_headline_counts_and_quotes_certified_targets(certified: Journal) -> None:
    rows = summarise(certified).targets
    decided = (rows["lower"] > 0.6) | (rows["upper"] <= 0.6)
    done = int((rows["certified"] & decided).sum())
    text = Tags(render(certified)).text
    assert f"Certified and decided {done} of {len(rows)} targets" in text
    worst = rows.loc[rows["upper"].idxmax()]
    assert f"Highest upper bound {np.ceil(1000 * worst['upper'] - 1e-6) / 1000:.3f}" in text
    overall = rows.set_index("target").loc["overall error"]
    low, high = span(overall["lower"], overall["upper"]).split(" to ")
    assert f"overall error : between {low} and {high}" in text


class Greedy:
    """Asks mostly about every twentieth sample."""

    def weights(self, candidates: Any, belief: Any) -> torch.Tensor:
        return torch.where(candidates.question % 20 == 0, 200.0, 1.0)


def test_beliefs_outside_of_their_interval_are_flagged() -> None:
    """The model misses whatever is there; the strategy asks of it far more often than it is."""
    labels = pd.DataFrame({"rare": np.arange(4000) % 20 == 0}).astype(int)
    dataset = avtt.datasets.from_table(None, labels)
    model = ScriptedModel(answers="one")
    model.ask = lambda prompts: [Answer((0.1,)) for _ in prompts]  # type: ignore[method-assign]
    options = {"targets": ["overall"], "half_width": 0.1, "budget": 150, "surrogate": False}
    journal = audit(dataset, model, ["identity"], strategy=Greedy(), **options)
    (row,) = Evidence.of(journal).standings
    assert row.raw is not None
    assert row.lower <= 0.05 <= row.upper < row.raw
    page = render(journal)
    assert (
        f"overall error: the raw mean, {100 * row.raw:.1f} %, lies above the certified interval "
        f"{span(row.lower, row.upper)}: the questions chosen were harder than the rest."
    ) in Tags(page).text
    assert page.count('title="a belief lies outside the interval"') == 1
    (_, target) = block(page, "certified-data")["rows"]
    assert target["astray"]


def test_agreeing_beliefs_are_not_flagged() -> None:
    options = {"targets": ["overall"], "half_width": 0.2, "strategy": "random", "surrogate": False}
    model = ScriptedModel(answers="one")
    page = render(audit(tiny_dataset(), model, ["identity", "rotation"], **options))
    assert "Where belief and certificate disagree" not in page
    assert "the interval holds, at every moment of the audit." in Tags(page).text


def test_cost_tells_when_each_target_was_done(certified: Journal) -> None:
    rows = rows_of(render(certified), "Calls until each target was done")
    for standing in Evidence.of(certified).standings:
        cells = rows[standing.name]
        moment = standing.settled_at
        assert values_of(cells[0]) == [61 if moment is None else moment]
        if moment is None:
            assert ">open<" in cells[0]
            continue
        for n, done in ((moment - 1, False), (moment, True)):
            interval = recomputed(certified, n)[standing.place]
            narrow = interval.upper - interval.lower <= 0.6 + 1e-9
            assert (narrow and not interval.lower <= 0.6 < interval.upper) is done


def test_answer_gp_implies_rates() -> None:
    labels = pd.DataFrame({"c": [0, 1] * 40})
    dataset = avtt.datasets.from_table(None, labels)
    model = ScriptedModel(answers="one")
    model.ask = lambda prompts: [Answer((0.02,)) for _ in prompts]  # type: ignore[method-assign]
    options = {"targets": ["concepts"], "surrogate": False}
    journal = audit(dataset, model, ["identity"], half_width=0.05, **options)
    found = {s.name: s.belief for s in Evidence.of(journal).standings}
    assert found["c: miss rate"] is not None
    assert found["c: miss rate"] > 0.9
    assert found["c: false-alarm rate"] is not None
    assert found["c: false-alarm rate"] < 0.5


# -- pictures and draws ---------------------------------------------------------------------


def test_gallery_shows_the_journals_pictures(page: str, fashion: Path) -> None:
    shown = {a["src"] for t, a in Tags(page).tags if t == "img"}
    for source, follow_up in SQLiteJournal(fashion).pictures().values():
        for png in {source, follow_up}:
            assert "data:image/png;base64," + b64encode(png).decode() in shown


def test_large_pictures_are_left_out_before_the_page_grows_heavy() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (30, 160, 160, 3), dtype=np.uint8)
    labels = pd.DataFrame({"c": [0, 1] * 15})
    dataset = avtt.datasets.from_table(noise, labels)
    page = render(audit(dataset, ScriptedModel(), budget=60))
    assert len(page) < 8_000_000
    assert "to keep this page small" in Tags(page).text


def test_draws_tell_what_was_asked_and_why(page: str, fashion: Path) -> None:
    text = Tags(page).text
    journal = SQLiteJournal(fashion)
    evidence, first = Evidence.of(journal), journal.draws()[0]
    asked = evidence.asked(first.question)
    assert f"{asked.concept} present in {first.sample}" in text
    assert f"{first.why['eligible']:,} of {first.why['candidates']:,}" in text
    assert page.count('<span class="verdict') == 300


def test_many_draws_are_cut_and_counted() -> None:
    model = ScriptedModel(answers="one")
    options = {"budget": 620, "strategy": "random", "candidates": 16}
    journal = audit(tiny_dataset(60, images=False), model, **options)
    page = render(journal)
    assert page.count('<span class="verdict') == 500
    assert "The journal holds 620 draws; here are the first 250 and the last 250." in page


# -- odd audits -----------------------------------------------------------------------------


def unfinished(ask: int, **options: Any) -> Journal:
    """An audit with some calls sent and none answered."""
    space, journal = avtt.QuestionSpace(tiny_dataset()), MemoryJournal()
    running = avtt.Audit(space, ScriptedModel(), budget=9, journal=journal, **options)
    if ask:
        running.ask(ask)
    return journal


def many_targets(concepts: int = 50, **options: Any) -> Journal:
    dataset = tiny_dataset(concepts=concepts)
    return audit(dataset, ScriptedModel(), budget=5, half_width=0.2, surrogate=False, **options)


ODD = {
    "nothing asked": lambda: unfinished(0),
    "nothing answered": lambda: unfinished(3),
    "some refused": lambda: audit(tiny_dataset(), ScriptedModel(refuse=0.2), budget=40),
    "all refused": lambda: audit(
        tiny_dataset(), ScriptedModel(refuse=1.0), budget=20, fail_on_error=1
    ),
    "one concept, one relation": lambda: audit(
        tiny_dataset(concepts=1), ScriptedModel(), ["identity"], budget=5
    ),
    "no pictures": lambda: audit(tiny_dataset(images=False), ScriptedModel(), budget=20),
    "40 concepts": lambda: audit(tiny_dataset(concepts=40), ScriptedModel(), budget=20),
    "everything asked": lambda: audit(
        tiny_dataset(4), ScriptedModel(answers="one"), ["identity"], strategy="random"
    ),
}
ODD_CERTIFIED = {
    "nothing asked": lambda: unfinished(0, half_width=0.1),
    "nothing answered": lambda: unfinished(3, at_most=0.2),
    "all refused": lambda: audit(
        tiny_dataset(),
        ScriptedModel(refuse=1.0),
        budget=20,
        half_width=0.1,
        unanswered="both",
        fail_on_error=1,
    ),
    "one target": lambda: many_targets(2, targets=["overall"]),
    "100 targets": lambda: many_targets(targets=["concepts"]),
    "everything asked": lambda: audit(
        tiny_dataset(4), ScriptedModel(answers="one"), ["identity"], half_width=0.01, at_most=0.4
    ),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ODD)
def test_odd_audits_have_a_whole_page(name: str) -> None:
    page = render(ODD[name]())
    tags = Tags(page)
    assert all(tags.with_id(id) for id in SECTIONS)
    assert page.rstrip().endswith("</html>")
    for id in ("beliefs-data", "uncertainty-chart-data", "map-data"):
        block(page, id)
    assert not re.search(r"\bnan\b|\bNone\b", tags.text)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ODD_CERTIFIED)
def test_odd_certified_audits_have_a_whole_page(name: str) -> None:
    page = render(ODD_CERTIFIED[name]())
    tags = Tags(page)
    gone = {"nothing asked": "spending", "nothing answered": "spending", "one target": "derived"}
    there = [s for s in CERTIFIED if s != gone.get(name)]
    assert [a["id"] for t, a in tags.tags if t == "section"] == there
    assert page.rstrip().endswith("</html>")
    for id in ("certified-data", "widths-chart-data"):
        block(page, id)
    assert not re.search(r"\bnan\b|\bNone\b", tags.text)


def test_unfinished_certified_audit_says_what_is_open() -> None:
    text = Tags(render(unfinished(3, half_width=0.1, targets=["concepts"]))).text
    assert "Still running" in text
    assert "0 of 6 targets are certified. Still open: c0: miss rate (±0.500 so far)" in text
    assert "0.000 to 1.000" in text
    text = Tags(render(unfinished(3, at_most=0.1, targets=["overall"]))).text
    assert "overall error is not decided yet: between 0.000 and 1.000." in text


def test_unfinished_audit_says_so() -> None:
    text = Tags(render(unfinished(3))).text
    assert "Still running" in text
    assert "3 calls wait for an answer" in text
    assert "No question has been answered and judged yet" in text


def test_random_questions_are_not_called_adaptive() -> None:
    journal = audit(tiny_dataset(), ScriptedModel(), budget=12, strategy="random")
    text = Tags(render(journal)).text
    assert "chosen adaptively" not in text
    assert "carry no guarantee" in text


def test_journal_without_an_audit_is_refused() -> None:
    with pytest.raises(JournalError, match="no audit was begun"):
        render(MemoryJournal())


# -- hostile text ---------------------------------------------------------------------------


class Hostile(ScriptedModel):
    """Refuses with a reason that would like to be a script."""

    def ask(self, prompts: Any) -> list[Answer | Unanswered]:
        answers = super().ask(prompts)
        return [Unanswered(EVIL) if isinstance(a, Unanswered) else a for a in answers]


def hostile_journal() -> Journal:
    concepts = [EVIL, "</script><img src=x onerror=alert(2)>", "a & 'b' \"c\" {{ 7*7 }} \u2028"]
    labels = pd.DataFrame([[0, 1, 0], [1, 0, 1]] * 8, columns=concepts)
    labels.index = [f"<b>{EVIL}{i}" for i in range(16)]
    images = np.random.default_rng(0).integers(0, 256, (16, 8, 8, 3), dtype=np.uint8)
    dataset = avtt.datasets.from_table(images, labels, name=f"</title>{EVIL}")
    model = Hostile(answers="one", refuse=0.3)
    model.name = f"--><svg onload=alert(3)>{EVIL}"
    where = {f"where {EVIL} %{{y}}": {"truth": [1]}}
    targets = ["concepts", "relations", *where]
    return audit(
        dataset, model, budget=40, half_width=0.1, targets=targets, where=where, surrogate=False
    )


def test_hostile_text_stays_text() -> None:
    page = render(hostile_journal())
    tags = Tags(page)
    assert "<script>alert" not in own(page)
    assert not any(tag == "svg" and "onload" in a for tag, a in tags.tags)
    assert not any(name.startswith("on") for _, a in tags.tags for name in a)
    assert EVIL in tags.text
    assert "{{ 7*7 }}" in tags.text
    for id in ("beliefs-data", "uncertainty-chart-data", "map-data"):
        assert "<" not in json.dumps(block(page, id))
    for id in ("certified-data", "widths-chart-data"):
        assert "<script" not in json.dumps(block(page, id))


# -- writing --------------------------------------------------------------------------------


def test_report_is_written(tmp_path: Path) -> None:
    journal = unfinished(0)
    write_report(journal, tmp_path / "new" / "report.html")
    assert (tmp_path / "new" / "report.html").read_text(encoding="utf-8") == render(journal)


def test_failed_write_leaves_the_old_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InputError, match="No space left on device"):
        write_report(unfinished(0), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


# -- small things ---------------------------------------------------------------------------


def test_numbers_are_written_for_people() -> None:
    space = "\u202f"
    assert percent(0.1234) == f"12.3{space}%"
    assert percent(0.0) == f"0{space}%"
    assert percent(0.00002) == f"0.0020{space}%"
    assert span(0.13, 0.2) == "0.130 to 0.200"
    assert span(0.1309, 0.2001) == "0.130 to 0.201"
    assert percent(float("nan")) == figure(float("nan")) == figure(None) == "–"
    assert duration(3.21) == f"3.2{space}s"
    assert duration(125) == "2 min 05 s"
    assert duration(7320) == "2 h 02 min"


def test_json_holds_no_nan() -> None:
    assert plain({"a": [float("nan"), float("inf"), 1 / 3, "x", 2]}) == {
        "a": [None, None, 0.3333, "x", 2]
    }


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_scripts_run_in_a_browser(tmp_path: Path) -> None:
    """Charts are drawn, hostile names do nothing, and the console stays silent."""
    path = tmp_path / "report.html"
    write_report(hostile_journal(), path)
    flags = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking"
    command = ["chromium", *flags.split(), f"--user-data-dir={tmp_path / 'profile'}"]
    command += ["--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom"]
    done = subprocess.run(
        [*command, path.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    assert "CONSOLE" not in done.stderr
    assert done.stdout.count('class="main-svg"') >= 5
    assert " shown</span>" in done.stdout


# -- cost and trouble -------------------------------------------------------------------------


def test_cost_is_shown_with_its_cap_and_failures_by_kind() -> None:
    model = ScriptedModel(refuse=0.4)
    model.statistics = lambda: {"attempts": 31, "failures": {"http 429": 4}}  # type: ignore[attr-defined]
    space = avtt.QuestionSpace(tiny_dataset(12, 2), ["identity", "rotation"], oracle=Consistency())
    audit = avtt.Audit(space, model, max_cost=30)
    result = audit.run()
    evidence = Evidence.of(audit.journal)
    assert evidence.cost == result.cost
    page = render(audit.journal)
    chart = block(page, "spending-chart-data")
    trace = chart["calls"]["data"][0]
    assert (trace["x"][-1], trace["y"][-1]) == (result.calls, pytest.approx(result.cost))
    assert chart["seconds"]["layout"]["shapes"][0]["y0"] == 30
    text = Tags(page).text
    excluded = int(evidence.table["unanswered"].str.startswith("excluded", na=False).sum())
    assert excluded
    for row in (f"the source image was not answered {excluded} ", "attempts 31", "http 429 4"):
        assert row in " ".join(text.split())


def test_where_all_was_free_and_answered_there_is_no_cost_to_show() -> None:
    audit = avtt.Audit(
        avtt.QuestionSpace(tiny_dataset(4, 1)),
        PythonModel(lambda images: np.ones((len(images), 1))),
    )
    audit.run()
    assert "spending-chart" not in render(audit.journal)
