"""The report in a browser: every kind of audit, without a word on the console; drill-down works."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt.results.report import write_report
from tests.helpers.chromium import Browser, needs_chromium
from tests.helpers.report_kinds import KINDS
from tests.helpers.report_pages import block
from tests.results.test_report_odd import hostile_journal

pytestmark = needs_chromium
Reports = Callable[[str], Path]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """Return a function that writes the report of a kind once: also of an audit whose names would
    like to be scripts."""
    folder = tmp_path_factory.mktemp("reports")

    @cache
    def report(name: str) -> Path:
        inputs = folder / f"{name} inputs"
        inputs.mkdir()
        journal = hostile_journal() if name == "hostile" else KINDS[name](inputs)
        write_report(journal, folder / f"{name}.html")
        return folder / f"{name}.html"

    return report


def run_in(page: Path, tmp_path: Path, script: str, hash: str = "") -> Any:
    """What ``script``, the body of an async function, returns in the page."""
    with opened(page, tmp_path, hash) as browser:
        result = browser.value("(async () => {" + script + "})()")
        assert browser.complaints == []
    return result


@contextmanager
def opened(
    page: Path, tmp_path: Path, hash: str = "", before: str = "", **size: int
) -> Iterator[Browser]:
    with Browser(tmp_path / "profile", **size) as browser:
        browser.open(page.as_uri() + hash, before)
        browser.until("document.readyState === 'complete' && typeof avtt === 'object'")
        browser.value(WALK)
        yield browser


WALK = """
window.pause = (time) => new Promise((done) => setTimeout(done, time));
window.walk = async () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
  for (const chart of document.querySelectorAll(".chart")) {
    chart.scrollIntoView({ behavior: "instant" });
    for (let k = 0; k < 200 && !chart.dataset.drawn && !chart.hidden; k++) await pause(50);
  }
  return [...document.querySelectorAll(".chart")].map((c) => [c.id, Boolean(c.dataset.drawn)]);
};
null
"""
"""A function that unfolds everything, goes to each figure, and says which of them are drawn."""


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", [*KINDS, "hostile"])
def test_no_kind_of_report_says_a_word_on_the_console(
    reports: Reports, tmp_path: Path, name: str, width: int
) -> None:
    """At the width of a desk and of a phone, unfolded and with every figure drawn; nothing is
    wider than the page. Pictures, light and dark, go to the folder that AVTT_SCREENSHOTS names."""
    with opened(reports(name), tmp_path, width=width, height=900) as browser:
        assert all(drawn for _, drawn in browser.value("walk()"))
        assert browser.value("document.documentElement.scrollWidth") <= width
        if shots := os.environ.get("AVTT_SCREENSHOTS"):
            height = browser.value("document.documentElement.scrollHeight")
            browser.resize(width, min(height, 8000))
            Path(shots).mkdir(parents=True, exist_ok=True)
            for scheme in ("light", "dark"):
                browser.scheme(scheme)
                browser.value("window.scrollTo(0, 0); pause(500)")
                browser.screenshot(Path(shots) / f"{name}-{width}-{scheme}.png")
        assert browser.complaints == []


def test_charts_are_drawn_and_hostile_names_do_nothing(reports: Reports, tmp_path: Path) -> None:
    drawn = dict(run_in(reports("hostile"), tmp_path, "return walk();"))
    believed = ("surface-chart", "curves-chart", "trust-chart")
    assert drawn == dict.fromkeys(
        (*believed, "spending-chart", "widths-chart", "beliefs-chart", "uncertainty-chart"), True
    )


@pytest.mark.slow
def test_names_are_text_in_figures_and_files(reports: Reports, tmp_path: Path) -> None:
    """Names stand in hover, keys, CSV and image as they are, and the image is a PNG."""
    script = """
      await walk();
      const chart = document.getElementById("widths-chart");
      const only = document.querySelector("[data-only=widths-chart]");
      only.value = [...only.options].find((o) => o.text.includes("where ")).value;
      only.dispatchEvent(new Event("change"));
      await pause(300);
      chart.focus();
      chart.dispatchEvent(new KeyboardEvent("keydown", { key: "End" }));
      const spoken = chart.closest(".plot").querySelector(".plot-text").textContent;
      const legend = [...chart.querySelectorAll(".legendtext")].map((t) => t.textContent);
      const foreign = chart.querySelectorAll("a, script, img, b").length;
      const saved = [];
      const click = HTMLAnchorElement.prototype.click;
      HTMLAnchorElement.prototype.click = function () {
        saved.push([this.download, this.href.slice(0, 15)]);
      };
      for (const kind of ["png", "csv"]) {
        chart.closest(".plot").querySelector(`[data-save=${kind}]`).click();
        const done = () => saved.some(([name]) => name.endsWith(kind));
        for (let k = 0; k < 100 && !done(); k++) await pause(50);
      }
      HTMLAnchorElement.prototype.click = click;
      const one = { name: "=1+1", x: [1], y: [2] };
      const two = { name: "&lt;b>, 'x'", x: [3], y: [null] };
      const csv = avtt.csv({ data: [one, two], layout: {} });
      return { spoken, legend, foreign, saved, csv };
    """
    result = run_in(reports("hostile"), tmp_path, script)
    assert "where <script>alert(1)</script> %{y}" in result["spoken"]
    assert [n for n in result["legend"] if "<script>alert(1)</script> %{y}" in n], result["legend"]
    assert result["foreign"] == 0
    png, csv = sorted(result["saved"], key=lambda pair: pair[0].endswith("csv"))
    assert png == ["widths-chart.png", "data:image/png;"]
    assert csv == ["widths-chart.csv", "blob:null/"[:15] + csv[1][10:]]
    assert result["csv"] == "series,x,y\n'=1+1,1,2\n\"<b>, 'x'\",3,\n"


@pytest.mark.slow
@pytest.mark.parametrize("way", ["folder", "no DecompressionStream", "folder without it"])
def test_ways_to_plotly(reports: Reports, tmp_path: Path, way: str) -> None:
    """Where it cannot be had, a sentence says so and the table stands open."""
    page = tmp_path / "page.html"
    write_report(hostile_journal(), page, plotly="folder" if way[0] == "f" else "inline")
    if way == "folder without it":
        (tmp_path / "plotly.min.js").unlink()
    lacking = "delete window.DecompressionStream" if way == "no DecompressionStream" else ""
    with opened(page, tmp_path, before=lacking) as browser:
        drawn = way == "folder"
        assert dict(browser.value("walk()"))["widths-chart"] == drawn
        text = (
            "document.getElementById('widths-chart').closest('.plot').querySelector('.plot-text')"
        )
        sentence = browser.value(f"{text}.textContent")
        assert sentence.startswith("This figure cannot be drawn here: ") != drawn
        assert (tmp_path / "plotly.min.js").exists() == drawn


@pytest.mark.slow
def test_a_bar_a_cell_and_a_target_lead_to_their_failures(reports: Reports, tmp_path: Path) -> None:
    """Each link shows as many cards as failures fit it, and the address says what is shown."""
    script = """
      const items = avtt.read("failures-data");
      const seen = [];
      for (const link of document.querySelectorAll(".forest th a, .cell, .worst .drill")) {
        location.hash = link.hash;
        await new Promise((done) => setTimeout(done, 20));
        const want = Object.fromEntries(new URLSearchParams(link.hash.split("?")[1]));
        const fit = items.filter((item) =>
          (!want.target || item.targets.includes(Number(want.target))) &&
          (!want.relation || item.relation === Number(want.relation)) &&
          (!want.severity || item.severity === Number(want.severity)));
        const cards = document.getElementById("failures-list").children.length;
        const kept = location.hash === link.hash;
        seen.push([link.className, cards === Math.min(fit.length, 9), kept]);
      }
      return seen;
    """
    result = run_in(reports("labels"), tmp_path, script)
    assert {kind.split()[0] for kind, _, _ in result} == {"drill", "cell"}
    assert len(result) > 15
    assert all(fits and kept for _, fits, kept in result)


@pytest.mark.slow
def test_keys_go_through_the_failures_and_close_them(reports: Reports, tmp_path: Path) -> None:
    script = """
      const event = (key) => new KeyboardEvent("keydown", { key, bubbles: true });
      const press = (key) => document.activeElement.dispatchEvent(event(key));
      const pause = () => new Promise((done) => setTimeout(done, 100));
      const dialog = document.getElementById("failure");
      const place = document.getElementById("failure-place");
      const title = () => `${place.textContent} ${location.hash}`;
      const seen = [dialog.open, title()];
      press("ArrowRight"); await pause(); seen.push(title());
      press("ArrowLeft"); await pause(); seen.push(title());
      const difference = () => document.querySelector("#failure-views canvas");
      for (let k = 0; k < 20 && !difference(); k++) await pause();
      for (const tag of ["img", "canvas"]) {
        seen.push(document.querySelectorAll(`#failure-views ${tag}`).length);
      }
      dialog.dispatchEvent(new Event("cancel", { cancelable: true }));  // what Escape does
      seen.push(dialog.open, location.hash, document.activeElement.hash);
      press("ArrowRight"); seen.push(document.activeElement.hash);
      return seen;
    """
    page = reports("uncertified")
    items = block(page.read_text(encoding="utf-8"), "failures-data")
    at = next(k for k, item in enumerate(items) if len(item["views"]) == 2 and k > 0)
    first, second = (f"#failure-{items[k]['id']}" for k in (at, at + 1))
    count = len(items)
    assert run_in(page, tmp_path, script, first) == [
        True,
        f"{at + 1} of {count} {first}",
        f"{at + 2} of {count} {second}",
        f"{at + 1} of {count} {first}",
        2,
        1,
        False,
        "#failures",
        first,
        second,
    ]
