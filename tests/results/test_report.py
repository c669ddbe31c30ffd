"""The report: whole, safe, honest, and rebuilt from the journal alone."""

import json
import os
import re
from base64 import b64encode
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from plotly.offline import get_plotlyjs

import adaptive_vtt as avtt
from adaptive_vtt.errors import InputError
from adaptive_vtt.journal import MemoryJournal, SQLiteJournal
from adaptive_vtt.oracles import Consistency, TopClass
from adaptive_vtt.results.outcomes import confusion, outcomes, wilson
from adaptive_vtt.results.report import gallery, render, write_report
from adaptive_vtt.results.report.evidence import Evidence
from adaptive_vtt.results.report.frame import hashed
from adaptive_vtt.results.report.gallery import Album, in_turn, picture
from adaptive_vtt.results.report.rates import FIGURES
from adaptive_vtt.results.report.section import (
    aim,
    as_command,
    duration,
    estimated,
    exact,
    figure,
    percent,
    plain,
    span,
    within,
)
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.utils.image_codec import png
from tests.helpers.report_pages import FOLDED, SECTIONS, Tags, audit, block, spaced, unfinished

CALLS = 25
RELATIONS = ["identity", "rotation", "contrast_down"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of an audit that certifies nothing."""
    path = tmp_path_factory.mktemp("explored") / "journal.db"
    space = avtt.QuestionSpace(tiny_dataset(20, 4), RELATIONS)
    with avtt.Audit(space, ScriptedModel(), budget=CALLS, seed=0, journal=path) as running:
        running.run()
    return path


@pytest.fixture(scope="module")
def page(path: Path) -> str:
    with closing(SQLiteJournal(path)) as journal:
        return render(journal)


@pytest.fixture(scope="module")
def table(path: Path) -> pd.DataFrame:
    with closing(SQLiteJournal(path)) as journal:
        return outcomes(journal)


# -- one file, from the journal alone -----------------------------------------------------


def test_nothing_is_loaded_from_outside(page: str) -> None:
    tags = Tags(page).tags
    for tag, attributes in tags:
        assert tag not in ("link", "iframe", "object", "embed", "base", "form")
        for name in ("src", "href", "srcset", "data", "action", "poster"):
            value = attributes.get(name) or ""
            assert not value or value.startswith(("#", "data:image/png;base64,")), (tag, value)
    assert "@import" not in page
    assert "url(" not in page
    policy = [a["content"] for t, a in tags if t == "meta" and "http-equiv" in a]
    assert len(policy) == 1
    assert "default-src 'none'" in (policy[0] or "")


def test_only_scripts_of_ours_run(page: str) -> None:
    """The policy has the hash of each, and of plotly.js, and lets nothing else run."""
    policy = next(a["content"] for t, a in Tags(page).tags if t == "meta" and "http-equiv" in a)
    allowed = re.search(r"script-src ([^;]*)", policy or "")
    assert allowed is not None
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert allowed[1].split() == [*map(hashed, scripts), hashed(get_plotlyjs())]


def test_all_sections_stand_in_order(page: str) -> None:
    tags = Tags(page).tags
    sections = [*SECTIONS[:-1], "cost", SECTIONS[-1]]
    assert [attributes.get("id") for tag, attributes in tags if tag == "section"] == sections
    folded = [a["id"] for t, a in tags if t == "details" and a.get("class") == "folded"]
    assert folded[-3:] == FOLDED
    bar = page[page.index('class="bar"') : page.index("</nav>")]
    assert re.findall(r'href="#(.*?)"', bar) == sections


def test_no_path_of_this_machine_is_in_the_page(page: str, path: Path) -> None:
    assert str(path.parent) not in page
    assert os.getcwd() not in page


# -- the figures ----------------------------------------------------------------------------


def test_table_agrees_with_confusion(page: str, table: pd.DataFrame) -> None:
    expected = confusion(table, "concept")
    part = page[page.index('aria-label="Counts and figures per concept"') :]
    rows = re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', part.split("</table>")[0], re.DOTALL)
    assert [name for name, _ in rows] == ["c0", "c1", "c2", "c3"]
    for name, cells in rows:
        values = [float(v) for v in re.findall(r'data-value="(.*?)"', cells)]
        row = expected.loc[name]
        assert values[0] == row["tn"] + row["fp"]
        assert values[1] == row["fn"] + row["tp"]
        assert values[2:7] == row[["tn", "fp", "fn", "tp", "unanswered"]].tolist()
        loss = table[table["concept"] == name]["loss"].mean()
        figures = [loss, *row[[*FIGURES][1:]].astype(float)]
        assert values[7:] == pytest.approx(figures, nan_ok=True)


def test_beliefs_count_every_answer(page: str, path: Path, table: pd.DataFrame) -> None:
    data = block(page, "beliefs-data")
    concepts = SQLiteJournal(path).facts()["space"]["concepts"]
    for concept, part in table.groupby("concept", sort=False):
        place = concepts.index(concept)
        assert sum(count for _, count in data["hits"][place]) == len(part)
        expected = confusion(part, "concept").iloc[0][["tn", "fp", "fn", "tp"]]
        assert data["quarters"][place] == expected.astype(int).tolist()


def test_the_band_of_an_answer_gp_holds_what_it_says(page: str) -> None:
    """95 % of each concept's bins, and never fewer than no answers."""
    data = block(page, "beliefs-data")
    for low, high, hits in zip(data["low"], data["high"], data["hits"], strict=True):
        counts = np.zeros(len(data["grid"]))
        for place, count in hits:
            counts[place] = count
        inside = (np.array(low) - 1e-3 <= counts) & (counts <= np.array(high) + 1e-3)
        assert inside.mean() >= 0.95
        assert min(low) >= 0


@pytest.mark.slow
def test_uncertainty_is_what_the_audit_saw() -> None:
    space = avtt.QuestionSpace(tiny_dataset(8, 2), ["identity", "rotation"])
    model = ScriptedModel(refuse=0.1)
    running = avtt.Audit(space, model, budget=12, journal=(journal := MemoryJournal()))
    seen = [running.state()]
    while calls := running.ask():
        running.tell(calls[0], model.ask([calls[0].prompt])[0])
        seen.append(running.state())
    replay = Evidence(journal).replay
    assert replay.questions.tolist() == [s.questions for s in seen]
    assert np.allclose(replay.uncertainty, [s.uncertainty for s in seen], equal_nan=True)
    lines = block(render(journal), "uncertainty-chart-data")["calls"]["data"]
    traces = {line["name"]: line for line in lines}
    mean, widest = ([100 * getattr(s, name) for s in seen] for name in ("mean", "widest"))
    assert traces["mean"]["x"] == list(range(13))
    assert traces["mean"]["y"] == pytest.approx(mean, abs=1e-4)
    assert traces["most uncertain side"]["y"] == pytest.approx(widest, abs=1e-4)


# -- pictures and draws ---------------------------------------------------------------------


def test_every_wrong_call_is_in_the_gallery_with_its_pictures(page: str, path: Path) -> None:
    journal = SQLiteJournal(path)
    kept, pictures = journal.pictures(), block(page, "pictures")
    items = {item["id"]: item for item in block(page, "failures-data")}
    wrong = {c.call for c in journal.calls() if any((a.loss or 0) >= 0.5 for a in c.answers)}
    assert items.keys() == kept.keys() == wrong
    for call, item in items.items():
        shown = [pictures[view["picture"]][0] for view in item["views"]]
        # one picture where nothing was changed
        wanted = list(dict.fromkeys(kept[call]))
        assert shown == ["data:image/png;base64," + b64encode(p).decode() for p in wanted]


@pytest.mark.parametrize("own", [False, True])
def test_a_wrong_class_is_shown_with_the_true_one_and_a_reply_as_it_came(own: bool) -> None:
    labels = pd.DataFrame(np.eye(3, dtype=int)[np.arange(9) % 3], columns=["nut", "spring", "<b>"])
    asked = labels.where(labels == 1) if own else labels  # about its own class alone
    space = avtt.QuestionSpace(avtt.datasets.from_table(None, asked), oracle=TopClass())
    journal = MemoryJournal()
    avtt.Audit(space, ScriptedModel(), journal=journal).run()
    evidence = Evidence(journal)
    row = evidence.call_of[evidence.failures[0].call]
    evidence.call_of[row.call] = replace(row, reply="I see\n<b>nothing</b>")
    items = json.loads(
        re.findall(r'id="failures-data">(.*?)<', gallery.failures_section(evidence).html)[0]
    )
    assert items[0]["reply"] == "I see <b>nothing</b>"
    for item in items:
        (line,) = item["lines"]
        true, truths = line["name"].removeprefix("true: "), labels.loc[int(item["sample"])]
        assert truths[true] == 1
        predicted = re.fullmatch(r"predicted: (.*) \(\d+\u202f%\)", line["text"])
        assert predicted is not None
        assert truths[predicted[1]] == 0


def test_figures_of_targets_have_the_names_of_result_json() -> None:
    wanted = {"half_width": 0.3, "targets": ["overall"], "surrogate": False}
    page = render(audit(tiny_dataset(), ScriptedModel(), budget=5, **wanted))
    heads = re.findall(r'<button type="button" title="[^"]*">([^<]+)</button></th>', page)
    assert {"size", "questions", "estimate", "interval", "half-width"} <= {*heads}
    assert "seen" not in heads


def test_the_first_screen_names_unanswered_questions() -> None:
    text = Tags(render(audit(tiny_dataset(), ScriptedModel(refuse=0.2), budget=10))).text
    first = text[: text.index("Next steps")]
    assert re.search(r"Unanswered \d+\.\d % of the questions; most often: ", first)
    assert "Unanswered" not in Tags(render(audit(tiny_dataset(), ScriptedModel(), budget=2))).text


def test_a_picture_that_is_left_out_says_why() -> None:
    album = Album(room=300)
    small, large = png(np.zeros((4, 4, 3), np.uint8)), png(np.eye(60, dtype=np.uint8) * 255)
    assert album.view(small, "source") == {"picture": 0, "caption": "source"}
    assert album.view(None, "source") == {"picture": None, "caption": "source"}
    assert album.view(large, "after")["bare"] == "left out: this page would be too large to send"
    assert album.full == 1


def test_large_pictures_stand_in_the_page_as_webp_and_tiny_ones_as_they_are() -> None:
    import cv2

    smooth = np.linspace(0, 255, 160 * 160 * 3).reshape(160, 160, 3).astype(np.uint8)
    noise = np.random.default_rng(0).integers(0, 256, (160, 160, 3), dtype=np.uint8)
    large, tiny = (cv2.imencode(".png", image)[1].tobytes() for image in (noise, smooth[:8, :8]))
    made = picture(large)
    assert made.address.startswith("data:image/webp;base64,")
    assert (made.width, made.height) == (160, 160)
    assert len(made.address) < len(large)
    assert picture(tiny).address == "data:image/png;base64," + b64encode(tiny).decode()
    broken = large[:9000]  # cut short: it stands as it is, and the browser shows nothing
    assert picture(broken).address == "data:image/png;base64," + b64encode(broken).decode()


@pytest.mark.slow
def test_what_random_draws_took_enters_the_report_the_stronger_first(tmp_path: Path) -> None:
    journal = audit(tiny_dataset(), ScriptedModel(), budget=10)
    path = tmp_path / "report.html"
    odd = '{"uniform": {"calls": %s, "certified": true}}'
    for text in ("{", "[]", odd % '"<b>"', odd % 0, odd % "true", '{"uniform": 3}'):
        (tmp_path / "baselines.json").write_text(text)
        write_report(journal, path)
        assert "Random sampling" not in path.read_text(encoding="utf-8")
    uniform = {"calls": 25, "certified": False}
    measured = {"uniform": uniform, "predicted": {"calls": 20, "certified": True}}
    (tmp_path / "baselines.json").write_text(json.dumps(measured))
    write_report(journal, path)
    text = Tags(path.read_text(encoding="utf-8")).text
    first = "Random sampling, same predictions 20 calls for the same guarantee; this audit took 50"
    then = "Random sampling, no predictions more than 25 calls for the same guarantee; the "
    then += "comparison stopped there; this audit took at most 40"
    assert text.index(first) < text.index(then)


# -- writing --------------------------------------------------------------------------------


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


def test_the_interval_of_a_share_is_wilsons() -> None:
    """Newcombe 1998, Table II has .1124 to .3304 for 10 of 50."""
    assert wilson(10, 50) == pytest.approx((0.1124, 0.3304), abs=5e-5)
    assert wilson(3, 3)[0] < wilson(60, 100)[0] < 0.6  # 3 wrong of 3 may be chance
    assert (wilson(0, 5)[0], wilson(5, 5)[1]) == (0, 1)


def test_numbers_are_written_for_people() -> None:
    space = "\u202f"
    assert estimated(0.000072, 0.0, 0.362) == f"0.0{space}%"  # as its interval, 0 to 36.2 %
    assert span(0.1309, 0.2001) == f"13.0 to 20.1{space}%"
    assert span(-0.0751, 0.2) == f"-7.6 to 20.0{space}%"
    assert within(0.0101) == f"±1.1{space}points"
    assert aim(0.025) == f"±2.5{space}points"
    assert exact(0.3) == f"30{space}%"
    assert within(None) == percent(float("nan")) == figure(float("nan")) == figure(None) == "–"
    assert [*map(duration, (3.21, 125, 7320))] == [f"3.2{space}s", "2 min 05 s", "2 h 02 min"]
    assert plain({"a": [float("nan"), 1 / 3, "x", 2]}) == {"a": [None, 0.3333, "x", 2]}
    assert span(0.3, 0.3) == "exact"
    whole = '<code>avtt gate <span class="option">--rule</span> &#39;a &lt;= 1&#39;</code>'
    assert as_command("avtt gate --rule 'a <= 1'") == whole  # no line ends within an option


def test_the_first_cards_are_of_all_kinds() -> None:
    """The order of the cards, the surest mistakes first, is kept within a kind."""
    cards = [{"of": kind, "id": k} for k, kind in enumerate("aaab" + "bca")]
    shown = in_turn(cards, lambda card: card["of"])
    assert "".join(f"{card['of']}{card['id']}" for card in shown) == "a0b3c5a1b4a2a6"


# -- cost and trouble -------------------------------------------------------------------------


def test_cost_is_shown_with_its_cap_and_failures_by_kind() -> None:
    model = ScriptedModel(refuse=0.4)
    counts = iter([{}, {"attempts": 31, "failures": {"http 429": 4}}])  # before, and after
    model.statistics = lambda: next(counts)  # type: ignore[attr-defined]
    space = avtt.QuestionSpace(tiny_dataset(12, 2), ["identity", "rotation"], oracle=Consistency())
    audit = avtt.Audit(space, model, max_cost=30, surrogate=False)
    result = audit.run()
    evidence = Evidence(audit.journal)
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


# -- money in doubt --------------------------------------------------------------------------


def test_the_cost_names_what_lost_calls_may_have_cost() -> None:
    """Three calls at 1 dollar were on their way, and are lost by now."""
    space, journal = avtt.QuestionSpace(tiny_dataset(12, 2), ["identity"]), MemoryJournal()
    options = {"budget": 6, "seed": 1, "journal": journal}
    avtt.Audit(space, ScriptedModel(), **options).ask(3)
    result = avtt.Audit(space, ScriptedModel(), **options).run()
    doubt = "up to $3.00 more may have been charged for 3 lost calls"
    assert result.paid == f"cost $6.00 ({doubt})"
    assert spaced(render(journal)).count(doubt) == 2  # on the first screen, too
