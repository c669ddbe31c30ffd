"""The report in a browser: every kind of audit, without a word on the console; drill-down works.

Screenshots go to the folder that AVTT_SCREENSHOTS names, else to one of pytest's.
"""

import json
import os
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from chromium import Browser, needs_chromium
from report_kinds import KINDS
from test_report_odd import hostile_journal

from adaptive_vtt.report import write_report
from adaptive_vtt.utils.image_files import read_image

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium on the PATH")
FLAGS = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking"
WAIT = "<script>for (let t = 0; t < 3000; t += 100) setTimeout(() => {}, t);</script>"
"""Keeps virtual time running while frames are drawn."""


def browse(tmp_path: Path, address: str, *options: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM is not None
    command = [CHROMIUM, *FLAGS.split(), f"--user-data-dir={tmp_path / 'profile'}"]
    command += ["--enable-logging=stderr", "--virtual-time-budget=5000", *options, address]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def console(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]


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
    page = (reports / f"{name}.html").read_text(encoding="utf-8")
    probe = (
        "<script>(async () => {" + script + "})().then((found) => {"
        " const out = document.createElement('pre'); out.id = 'found';"
        " out.textContent = JSON.stringify(found); document.body.append(out); });</script>"
    )
    path = tmp_path / "probe.html"
    path.write_text(page.replace("</body>", probe + WAIT + "</body>"), encoding="utf-8")
    done = browse(tmp_path, path.as_uri() + hash, "--dump-dom")
    assert not console(done)
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None
    return json.loads(unescape(found[1]))


@pytest.mark.slow
def test_no_kind_of_report_says_a_word_on_the_console(reports: Path, tmp_path: Path) -> None:
    """All of them in one window, at the width of a desk and of a phone, and unfolded."""
    frames = []
    for path in sorted(reports.glob("*.html")):
        page = path.read_text(encoding="utf-8")
        unfolded = tmp_path / f"{path.stem}.html"
        unfolded.write_text(page.replace("<details", "<details open"), encoding="utf-8")
        frames += [f'<iframe src="{unfolded.name}" width="{w}" height="900">' for w in (1280, 390)]
    (tmp_path / "all.html").write_text("</iframe>".join([*frames, WAIT]))
    done = browse(tmp_path, (tmp_path / "all.html").as_uri(), "--dump-dom")
    assert done.stdout.count("<iframe") == 2 * (len(KINDS) + 1)
    assert console(done) == []


def test_charts_are_drawn_and_hostile_names_do_nothing(reports: Path, tmp_path: Path) -> None:
    script = """
      for (const folded of document.querySelectorAll("details")) folded.open = true;
      await new Promise((done) => setTimeout(done, 300));
      const drawn = (chart) => chart.querySelectorAll("path").length > 0;
      return [...document.querySelectorAll(".chart")].map((c) => [c.id, drawn(c)]);
    """
    drawn = dict(run_in(reports, tmp_path, "hostile", script))
    assert drawn == dict.fromkeys(
        ("spending-chart", "widths-chart", "beliefs-chart", "uncertainty-chart"), True
    )


def test_a_bar_a_cell_and_a_target_lead_to_their_failures(reports: Path, tmp_path: Path) -> None:
    """Each link shows as many cards as failures fit it, and the address says what is shown."""
    script = """
      const items = avtt.read("failures-data");
      const found = [];
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
        found.push([link.className, cards === Math.min(fit.length, 12), kept]);
      }
      return found;
    """
    found = run_in(reports, tmp_path, "labels", script)
    assert {kind.split()[0] for kind, _, _ in found} == {"drill", "cell"}
    assert len(found) > 15
    assert all(fits and kept for _, fits, kept in found)


def test_keys_go_through_the_failures_and_close_them(reports: Path, tmp_path: Path) -> None:
    script = """
      const event = (key) => new KeyboardEvent("keydown", { key, bubbles: true });
      const press = (key) => document.activeElement.dispatchEvent(event(key));
      const pause = () => new Promise((done) => setTimeout(done, 100));
      const dialog = document.getElementById("failure");
      const place = document.getElementById("failure-place");
      const title = () => `${place.textContent} ${location.hash}`;
      const found = [dialog.open, title()];
      press("ArrowRight"); await pause(); found.push(title());
      press("ArrowLeft"); await pause(); found.push(title());
      const difference = () => document.querySelector("#failure-views canvas");
      for (let k = 0; k < 20 && !difference(); k++) await pause();
      for (const tag of ["img", "canvas"]) {
        found.push(document.querySelectorAll(`#failure-views ${tag}`).length);
      }
      dialog.dispatchEvent(new Event("cancel", { cancelable: true }));  // what Escape does
      found.push(dialog.open, location.hash, document.activeElement.hash);
      press("ArrowRight"); found.push(document.activeElement.hash);
      return found;
    """
    page = (reports / "uncertified.html").read_text(encoding="utf-8")
    found = re.search(r'id="failures-data">(.*?)</script>', page)
    assert found is not None
    items = json.loads(found[1])
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
    page = (reports / f"{name}.html").read_text(encoding="utf-8")
    path = tmp_path / f"{name}.html"
    opened = page.replace('<details class="folded"', '<details open class="folded"')
    path.write_text(opened.replace("</body>", WAIT + "</body>"), encoding="utf-8")
    for width in (1280, 500):  # Chromium's windows are no narrower; 390 px stands in a frame
        for scheme in ("light", "dark"):
            target, address = out / f"{name}-{390 if width == 500 else width}-{scheme}.png", path
            if width == 500:
                address = tmp_path / "frame.html"
                size = 'width="390" height="7980" style="border:0"'
                frame = f'<body style="margin:0"><iframe src="{path.name}" {size}></iframe>'
                address.write_text(frame + WAIT)
            dark = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
            size = f"--window-size={width},8000"
            done = browse(tmp_path, address.as_uri(), f"--screenshot={target}", size, *dark)
            assert console(done) == []
            assert target.stat().st_size > 20_000


@needs_chromium
def test_a_link_to_filtered_failures_is_shown_where_it_leads(reports: Path, tmp_path: Path) -> None:
    """The section stands below the bar, and is drawn. Chromium's --screenshot is blank here, as of
    any page that was scrolled; a window is not."""
    with Browser(tmp_path / "profile") as browser:
        browser.open((reports / "each.html").as_uri() + "#failures?target=3")
        browser.until("document.querySelectorAll('#failures-list article').length")
        top = "document.getElementById('failures').getBoundingClientRect().top"
        browser.until(f"0 < {top} && {top} < 100")
        assert browser.value("document.querySelector('[data-filter=target]').value") == "3"
        browser.screenshot(tmp_path / "linked.png")
        assert read_image(tmp_path / "linked.png", "screenshot").std() > 10
        browser.resize(390, 844)
        heads = "[...document.querySelectorAll('.map th')]"
        name = f"{heads}.find((head) => head.textContent === 'gaussian_noise')"
        assert browser.value(f"{name}.innerHTML") == "gaussian_<wbr>noise"  # breaks there
        assert browser.complaints == []
