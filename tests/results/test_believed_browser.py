"""The chapter "Predictions" in a browser, driven as a reader would: what changes?"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt.results.report import render
from adaptive_vtt.utils.files import write_text
from tests.helpers.chromium import Browser, needs_chromium
from tests.helpers.report_kinds import labels
from tests.helpers.report_pages import unpacked
from tests.results.test_report_browser import opened

pytestmark = needs_chromium
SURFACE = "document.getElementById('surface-chart')"
CURVES = "document.getElementById('curves-chart')"
IMAGES = "document.getElementById('images-chart')"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("believed") / "report.html"
    write_text(path, render(labels(surrogate=True, budget=24, half_width=0.05)))
    return path


@pytest.fixture(scope="module")
def content(page: Path) -> dict[str, Any]:
    return dict(unpacked(page.read_text(), "believed-data"))


@contextmanager
def at(page: Path, tmp_path: Path, chart: str) -> Iterator[Browser]:
    """The page with this chart in view and drawn."""
    with opened(page, tmp_path) as browser:
        browser.value(
            "for (const folded of document.querySelectorAll('details')) folded.open = true"
        )
        browser.value(f"{chart}.scrollIntoView({{ behavior: 'instant', block: 'center' }})")
        browser.until(f"{chart}.dataset.drawn && !document.getElementById('moments-at').disabled")
        yield browser
        assert browser.complaints == []


def move(browser: Browser, moment: int) -> None:
    """Moves the slider, and waits until surface, curves and list have followed."""
    browser.value(
        "(() => { const s = document.getElementById('moments-at'); "
        f"s.value = {moment}; s.dispatchEvent(new Event('input')); }})()"
    )
    browser.value("pause(300)")
    browser.until(f"{SURFACE}.dataset.moment === '{moment}'")


def grid(content: dict[str, Any], column: str, moment: int) -> list[list[float | None]]:
    heat = content["surfaces"][""]["data"][0]["meta"]["at"]
    values = content["tables"]["relation-concept"]["columns"][column][moment]
    return [[values[k] for k in row] for row in heat]


def cell_at(browser: Browser, row: int, column: int) -> tuple[float, float]:
    """Where the middle of a cell of the surface is in the window."""
    x, y = browser.value(
        f"(() => {{ const c = {SURFACE}, l = c._fullLayout, b = c.getBoundingClientRect(); "
        f"return [b.left + l.xaxis._offset + l.xaxis.r2p({column}) + 8, "
        f"b.top + l.yaxis._offset + l.yaxis.r2p({row}) + 3]; }})()"
    )
    return float(x), float(y)


@pytest.mark.slow
def test_slider_moves_surface_curves_and_list_and_a_cell_leads_to_its_failures(
    page: Path, tmp_path: Path, content: dict[str, Any]
) -> None:
    last = len(content["moments"]) - 1
    with at(page, tmp_path, SURFACE) as browser:
        heat, dots = f"{SURFACE}.data[0]", f"{SURFACE}.data[1].marker.size"
        assert browser.value(f"{heat}.z") == grid(content, "predicted", last)
        assert browser.value(f"{heat}.text") == grid(content, "text", last)
        lit = browser.value(dots)
        move(browser, 3)
        assert (
            browser.value(f"{heat}.z") == grid(content, "predicted", 3) != grid(content, "raw", 3)
        )
        assert (
            browser.value(dots) == [v for row in grid(content, "fresh_size", 3) for v in row] != lit
        )
        text = browser.value("document.getElementById('moments-text').textContent")
        assert text == f"after {content['moments'][3]} draws"
        title = browser.value("document.getElementById('moments-title').textContent")
        assert title == f"Asked between draws {content['moments'][2]} and {content['moments'][3]}"
        rows = "document.querySelectorAll('#moments-draws tbody tr').length"
        assert browser.value(rows) == content["draws"]["counts"][3]
        browser.value(f"{CURVES}.scrollIntoView({{ behavior: 'instant', block: 'center' }})")
        browser.until(f"{CURVES}.dataset.drawn")
        severity = content["tables"]["severity"]["columns"]["predicted"][3]
        mine = content["curves"][""]["data"][5]["meta"]["at"]
        assert browser.value(f"{CURVES}.data[5].y") == [severity[k] for k in mine]
        browser.value(f"{SURFACE}.scrollIntoView({{ behavior: 'instant', block: 'center' }})")
        browser.value("pause(200)")
        browser.mouse((5, 5), cell_at(browser, 0, 1))
        group = content["surfaces"][""]["data"][0]["meta"]["at"][0][1]
        concept, relation, _ = content["tables"]["relation-concept"]["groups"][group]
        places = content["relations"].index(relation), content["concepts"].index(concept)
        browser.until("location.hash")
        assert browser.value("location.hash") == "#failures?relation={}&concept={}".format(*places)
        for name, place in zip(("relation", "concept"), places, strict=True):
            chosen = f"document.querySelector('[data-filter={name}]').value"
            browser.until(f"{chosen} === '{place}'")  # set once the page hears of the hash


@pytest.mark.slow
def test_menus_colour_the_surface_and_choose_panels(
    page: Path, tmp_path: Path, content: dict[str, Any]
) -> None:
    change = (
        "((id, value) => {{ const s = document.getElementById(id); s.value = value; "
        "s.dispatchEvent(new Event('change')); return pause(1200); }})('{}', '{}')"
    )
    with at(page, tmp_path, SURFACE) as browser:
        for look in ("sd", "asked", "raw", "difference"):
            browser.value(change.format("surface-look", look))
            assert browser.value(f"{SURFACE}.data[0].z") == grid(content, look, -1)
        browser.value(change.format("surface-of", "rotation"))
        assert (
            browser.value(f"{SURFACE}.data[0].x") == content["surfaces"]["rotation"]["data"][0]["x"]
        )
        browser.value(f"{CURVES}.scrollIntoView({{ behavior: 'instant', block: 'center' }})")
        browser.until(f"{CURVES}.dataset.drawn")
        cells = content["tables"]["cell"]["columns"]["predicted"][-1]
        for name in ("c1", "r1"):
            browser.value(change.format("curves-of", name))
            wanted = [
                [cells[k] for k in trace["meta"]["at"]]
                for trace in content["curves"][name]["data"]
                if trace["meta"]["bind"]["y"] == "predicted"
            ]
            means = f"{CURVES}.data.filter((t) => t.meta.bind.y === 'predicted').map((t) => t.y)"
            assert browser.value(means) == wanted


@pytest.mark.slow
def test_lasso_lists_images_and_a_dot_shows_its_picture_and_failures(
    page: Path, tmp_path: Path
) -> None:
    samples = unpacked(page.read_text(), "images-data")["samples"]
    with at(page, tmp_path, SURFACE) as browser:
        browser.value(f"{IMAGES}.scrollIntoView({{ behavior: 'instant', block: 'center' }})")
        browser.until(f"{IMAGES}.dataset.drawn")
        browser.value("pause(300)")
        left, top, right, bottom = browser.value(
            f"(() => {{ const b = {IMAGES}.querySelector('.nsewdrag').getBoundingClientRect(); "
            "return [b.left + 3, b.top + 3, b.right - 3, b.bottom - 3]; })()"
        )
        corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
        browser.mouse(*corners, hold=True)
        ids = "document.getElementById('images-ids').value"
        browser.until(ids)
        assert sorted(browser.value(ids).split("\n")) == sorted(samples)
        count = browser.value("document.getElementById('images-count').textContent")
        assert count == f"{len(samples)} chosen"
        browser.value("document.getElementById('images-clear').click(); pause(700)")
        assert browser.value("document.getElementById('images-list').hidden")
        failed = browser.value(
            "avtt.read('failures-data').find((f) => f.views[0].picture !== null).sample"
        )
        place = samples.index(failed)
        x, y = browser.value(
            f"(() => {{ const c = {IMAGES}, l = c._fullLayout, b = c.getBoundingClientRect(); "
            f"return [b.left + l.xaxis._offset + l.xaxis.d2p(c.data[0].x[{place}]), "
            f"b.top + l.yaxis._offset + l.yaxis.d2p(c.data[0].y[{place}])]; }})()"
        )
        browser.mouse((left, top), (x, y), press=False)
        browser.until("document.getElementById('images-thumbnail').src.startsWith('data:image/')")
        browser.mouse((x, y))
        browser.until("location.hash")
        assert browser.value("decodeURIComponent(location.hash)") == f"#failures?sample={failed}"
        shown = "[...document.querySelectorAll('.failure-name')].map((n) => n.textContent)"
        browser.until(f"new Set({shown}).size === 1")  # filtered once the page hears of the hash
        assert set(browser.value(shown)) == {failed}


@pytest.mark.slow
def test_keys_go_through_the_surface_and_the_images(page: Path, tmp_path: Path) -> None:
    press = "{0}.dispatchEvent(new KeyboardEvent('keydown', {{ key: '{1}', bubbles: true }}))"
    with at(page, tmp_path, SURFACE) as browser:
        browser.value(f"{SURFACE}.focus()")
        browser.value(press.format(SURFACE, "ArrowRight"))
        text = browser.value(f"{SURFACE}.closest('.plot').querySelector('.plot-text').textContent")
        assert "asked failed" in text
        browser.value(press.format(SURFACE, "Enter"))
        browser.until("location.hash.startsWith('#failures?relation=')")
        browser.value(f"{IMAGES}.scrollIntoView({{ behavior: 'instant', block: 'center' }})")
        browser.until(f"{IMAGES}.dataset.drawn")
        for key in ("ArrowRight", " "):
            browser.value(press.format(IMAGES, key))
        first = unpacked(page.read_text(), "images-data")["samples"][0]
        assert browser.value("document.getElementById('images-ids').value") == first
