"""The report: whole, safe, honest, and rebuilt from the journal alone."""

import json
import os
import re
import shutil
import subprocess
from base64 import b64encode
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptive_vtt as avtt
from adaptive_vtt.errors import InputError, JournalError
from adaptive_vtt.journal import Journal, MemoryJournal, SQLiteJournal
from adaptive_vtt.models.base import Answer, Unanswered
from adaptive_vtt.models.fashion_cnn import predict
from adaptive_vtt.report import render, write_report
from adaptive_vtt.report.counts import FIGURES
from adaptive_vtt.report.evidence import Evidence
from adaptive_vtt.report.section import duration, figure, percent, plain
from adaptive_vtt.results import confusion, outcomes
from adaptive_vtt.testing import ScriptedModel, tiny_dataset

EVIL = "<script>alert(1)</script>"
SECTIONS = ["overview", "beliefs", "uncertainty", "counts", "gallery", "asked"]


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


def unfinished(ask: int) -> Journal:
    """An audit with some calls sent and none answered."""
    space = avtt.QuestionSpace(tiny_dataset())
    running = avtt.Audit(space, ScriptedModel(), budget=9, journal=(journal := MemoryJournal()))
    if ask:
        running.ask(ask)
    return journal


ODD = {
    "nothing asked": lambda: unfinished(0),
    "nothing answered": lambda: unfinished(3),
    "some refused": lambda: audit(tiny_dataset(), ScriptedModel(refuse=0.2), budget=40),
    "all refused": lambda: audit(tiny_dataset(), ScriptedModel(refuse=1.0), budget=20),
    "one concept, one relation": lambda: audit(
        tiny_dataset(concepts=1), ScriptedModel(), ["identity"], budget=5
    ),
    "no pictures": lambda: audit(tiny_dataset(images=False), ScriptedModel(), budget=20),
    "40 concepts": lambda: audit(tiny_dataset(concepts=40), ScriptedModel(), budget=20),
    "everything asked": lambda: audit(
        tiny_dataset(4), ScriptedModel(answers="one"), ["identity"], strategy="random"
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
    return audit(dataset, model, budget=40)


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
    assert done.stdout.count('class="main-svg"') >= 3
    assert " shown</span>" in done.stdout
