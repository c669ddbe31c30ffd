"""The report in a browser: every kind of audit, without a word on the console; drill-down works.

Screenshots go to the folder that AVTT_SCREENSHOTS names, else to one of pytest's.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt.results.report import write_report
from tests.helpers.chromium import Browser, needs_chromium
from tests.helpers.report_kinds import KINDS
from tests.results.test_report_odd import hostile_journal

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of every kind, and of an audit whose names would like to be scripts."""
    folder = tmp_path_factory.mktemp("reports")
    for name, make in KINDS.items():
        inputs = folder / f"{name} inputs"
        inputs.mkdir()
        write_report(make(inputs), folder / f"{name}.html")
    write_report(hostile_journal(), folder / "hostile.html")
    return folder


def run_in(reports: Path, tmp_path: Path, name: str, script: str, hash: str = "") -> Any:
    """What ``script``, the body of an async function, returns in the page of this name."""
    with opened(reports / f"{name}.html", tmp_path, hash) as browser:
        result = browser.value("(async () => {" + script + "})()")
        assert browser.complaints == []
    return result


@contextmanager
def opened(page: Path, tmp_path: Path, hash: str = "", **size: int) -> Iterator[Browser]:
    with Browser(tmp_path / "profile", **size) as browser:
        browser.open(page.as_uri() + hash)
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
def test_no_kind_of_report_says_a_word_on_the_console(
    reports: Path, tmp_path: Path, width: int
) -> None:
    """All of them, at the width of a desk and of a phone, unfolded and with every figure drawn;
    nothing is wider than the page."""
    with Browser(tmp_path / "profile", width, 900) as browser:
        for path in sorted(reports.glob("*.html")):
            browser.open(path.as_uri())
            browser.until(f"location.href.endsWith('{path.stem}.html') && typeof avtt === 'object'")
            browser.value(WALK)
            assert all(drawn for _, drawn in browser.value("walk()")), path
            assert browser.value("document.documentElement.scrollWidth") <= width, path
            assert browser.complaints == [], path


def test_charts_are_drawn_and_hostile_names_do_nothing(reports: Path, tmp_path: Path) -> None:
    drawn = dict(run_in(reports, tmp_path, "hostile", "return walk();"))
    believed = ("surface-chart", "curves-chart", "trust-chart")
    assert drawn == dict.fromkeys(
        (*believed, "spending-chart", "widths-chart", "beliefs-chart", "uncertainty-chart"), True
    )


@pytest.mark.slow
def test_plotly_comes_with_the_first_figure_and_names_are_text(
    reports: Path, tmp_path: Path
) -> None:
    """Names stand in hover, keys, CSV and image as they are, and the image is a PNG."""
    script = """
      const before = typeof Plotly;
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
      return { before, spoken, legend, foreign, saved, csv };
    """
    result = run_in(reports, tmp_path, "hostile", script)
    assert result["before"] == "undefined"
    assert "where <script>alert(1)</script> %{y}" in result["spoken"]
    assert [n for n in result["legend"] if "<script>alert(1)</script> %{y}" in n], result["legend"]
    assert result["foreign"] == 0
    png, csv = sorted(result["saved"], key=lambda pair: pair[0].endswith("csv"))
    assert png == ["widths-chart.png", "data:image/png;"]
    assert csv == ["widths-chart.csv", "blob:null/"[:15] + csv[1][10:]]
    assert result["csv"] == "series,x,y\n'=1+1,1,2\n\"<b>, 'x'\",3,\n"


@pytest.mark.slow
@pytest.mark.parametrize("way", ["folder", "no DecompressionStream", "folder without it"])
def test_ways_to_plotly(reports: Path, tmp_path: Path, way: str) -> None:
    """Where it cannot be had, a sentence says so and the table stands open."""
    page = tmp_path / "page.html"
    write_report(hostile_journal(), page, plotly="folder" if way[0] == "f" else "inline")
    if way == "folder without it":
        (tmp_path / "plotly.min.js").unlink()
    with opened(page, tmp_path) as browser:
        if way == "no DecompressionStream":
            browser.value("delete window.DecompressionStream; null")
        drawn = way == "folder"
        assert dict(browser.value("walk()"))["widths-chart"] == drawn
        text = (
            "document.getElementById('widths-chart').closest('.plot').querySelector('.plot-text')"
        )
        sentence = browser.value(f"{text}.textContent")
        assert sentence.startswith("This figure cannot be drawn here: ") != drawn
        assert (tmp_path / "plotly.min.js").exists() == drawn


@pytest.mark.slow
def test_a_bar_a_cell_and_a_target_lead_to_their_failures(reports: Path, tmp_path: Path) -> None:
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
    result = run_in(reports, tmp_path, "labels", script)
    assert {kind.split()[0] for kind, _, _ in result} == {"drill", "cell"}
    assert len(result) > 15
    assert all(fits and kept for _, fits, kept in result)


def test_keys_go_through_the_failures_and_close_them(reports: Path, tmp_path: Path) -> None:
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
    page = (reports / "uncertified.html").read_text(encoding="utf-8")
    match = re.search(r'id="failures-data">(.*?)</script>', page)
    assert match is not None
    items = json.loads(match[1])
    at = next(k for k, item in enumerate(items) if len(item["views"]) == 2 and k > 0)
    first, second = (f"#failure-{items[k]['id']}" for k in (at, at + 1))
    count = len(items)
    assert run_in(reports, tmp_path, "uncertified", script, first) == [
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


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_screenshots(reports: Path, tmp_path: Path, name: str) -> None:
    """At 1280 and 390 pixels, light and dark, unfolded and whole."""
    out = Path(os.environ.get("AVTT_SCREENSHOTS", tmp_path / "screenshots"))
    out.mkdir(parents=True, exist_ok=True)
    with opened(reports / f"{name}.html", tmp_path) as browser:
        for width in (1280, 390):
            browser.resize(width, 900)
            browser.value("walk()")
            browser.value("window.scrollTo(0, 0); pause(300)")
            height = browser.value("document.documentElement.scrollHeight")
            for scheme in ("light", "dark"):
                browser.scheme(scheme)
                browser.resize(width, min(height, 8000))
                browser.value("pause(500)")
                browser.screenshot(target := out / f"{name}-{width}-{scheme}.png")
                assert target.stat().st_size > 20_000
        assert browser.complaints == []
