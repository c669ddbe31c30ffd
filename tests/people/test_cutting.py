"""Cutting objects out of one's own pictures: by a box, by a click, and on the page."""

import http.client
from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

from adaptive_vtt.errors import InputError
from adaptive_vtt.people.cutting import CutOuts
from adaptive_vtt.relations.medtest import Folder, Instrument
from adaptive_vtt.relations.medtest.grabbing import grabbed, shown
from adaptive_vtt.results.view.server import Serving
from adaptive_vtt.types import Image, Mask, Sample
from adaptive_vtt.utils.image_files import read_image
from tests.helpers.chromium import Browser, needs_chromium
from tests.helpers.command_line import run

BOX = (52, 22, 28, 78)


def frame() -> tuple[Image, Mask]:
    """100 x 120 x 3 of rough tissue, with a steel rod that enters from below, and where that is."""
    rng = np.random.default_rng(0)
    image = np.full((100, 120, 3), (180, 95, 80), np.float64)
    rod = np.zeros((100, 120), bool)
    rod[30:, 60:72] = True
    image[rod] = (170, 172, 180)
    image += rng.normal(0, 5, image.shape)
    return np.clip(image, 0, 255).astype(np.uint8), rod


def overlap(one: Mask, other: Mask) -> float:
    return float((one & other).sum() / (one | other).sum())


@pytest.mark.parametrize("ways", [{"box": BOX}, {"box": BOX, "click": (66, 60)}])
def test_the_object_in_the_box_is_found(ways: dict[str, tuple[int, ...]]) -> None:
    image, rod = frame()
    found = grabbed(image, **ways)  # type: ignore[arg-type]
    assert overlap(found, rod) > 0.9
    assert np.array_equal(found, grabbed(image, **ways))  # type: ignore[arg-type]
    assert overlap(grabbed(image[:, :, 2:], **ways), rod) > 0.9  # type: ignore[arg-type]


def test_a_click_takes_the_piece_it_is_on() -> None:
    image, _ = frame()
    image[40:50, 20:30] = image[80:84, 20:24] = (90, 60, 20)
    found = grabbed(image, click=(25, 45))
    assert overlap(found, np.pad(np.ones((10, 10), bool), ((40, 50), (20, 90)))) > 0.9
    both = grabbed(image, box=(14, 34, 22, 56), click=(25, 45))
    assert not both[78:].any()


def test_a_large_picture_is_cut_as_its_small_twin() -> None:
    image, rod = frame()
    large = cv2.resize(image, None, fx=10, fy=10, interpolation=cv2.INTER_NEAREST)
    found = grabbed(large, (520, 220, 280, 780))
    assert found.shape == (1000, 1200)
    assert overlap(found, np.kron(rod, np.ones((10, 10), bool))) > 0.9


@pytest.mark.parametrize(
    ("box", "click", "sentence"),
    [
        (None, None, "expected --box or --click, got neither"),
        ((100, 0, 30, 9), None, r"--box: expected X Y W H within the picture of 120 x 100 pixels"),
        ((0, 0, 3, 9), None, "4 or more wide and high, got 0 0 3 9"),
        (None, (120, 5), r"--click: expected X and Y within the picture .*, got 120 5"),
        ((0, 0, 120, 100), None, "--box: expected some tissue within it and some around it, got 0"),
        ((10, 10, 20, 20), None, "--box 10 10 20 20: expected an object whose colours differ"),
    ],
)
def test_what_cannot_be_cut_is_one_sentence(
    box: tuple[int, int, int, int] | None, click: tuple[int, int] | None, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        grabbed(np.full((100, 120, 3), (180, 95, 80), np.uint8), box, click)


def test_the_command_writes_what_relations_paste(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image, rod = frame()
    cv2.imwrite(str(tmp_path / "a b.png"), image[:, :, ::-1])
    given = [str(tmp_path / "a b.png"), "--out", str(tmp_path / "tools")]
    for _ in range(2):  # the second beside the first
        assert run("cut-out", *given, "--box", *map(str, BOX)) == 0
    names = sorted(path.name for path in (tmp_path / "tools" / "masks").iterdir())
    assert names == ["a-b-2.png", "a-b.png"]
    folder = Folder(tmp_path / "tools")
    assert len(folder) == 2
    assert folder.number(0).area == pytest.approx(rod.sum(), rel=0.05)
    assert len(folder.number(0).tail)  # it enters from the edge, as it did
    sample = Sample("s", np.full((160, 160, 3), (190, 110, 90), np.uint8), {})
    pasted = Instrument(folder).apply(sample, 3, np.random.default_rng(0))
    assert pasted.details["adds"] == "instrument"
    assert run("cut-out", *given, "--click", "500", "5") == 2
    assert "--click: expected X and Y within the picture" in capsys.readouterr().err


pytestmark = pytest.mark.shares  # the threads that answer are begun by whoever asks first


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Serving, CutOuts]]:
    site = CutOuts(frame()[0], "one", tmp_path_factory.mktemp("kept") / "tools")
    with Serving(site) as server:
        yield server, site


@pytest.fixture
def get(page: tuple[Serving, CutOuts]) -> Callable[[str], tuple[int, bytes]]:
    def got(path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", page[0].port, timeout=20)
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()

    return got


def test_the_page_shows_an_object_and_keeps_it(
    page: tuple[Serving, CutOuts], get: Callable[[str], tuple[int, bytes]]
) -> None:
    key, box = page[1].key, "+".join(map(str, BOX))
    assert b"Cut out of one" in get(f"/{key}/")[1]
    status, picture = get(f"/{key}/show?box={box}")
    assert (status, picture[:2]) == (200, b"\xff\xd8")
    assert not page[1].folder.exists()
    status, told = get(f"/{key}/keep?box={box}")
    assert (status, told.decode()) == (200, f"saved {page[1].folder}/images/one.png and its mask")
    mask = read_image(page[1].folder / "masks" / "one.png", "")[:, :, 0] > 127
    assert np.array_equal(mask, grabbed(frame()[0], BOX))


@pytest.mark.parametrize("query", ["", "box=1+2", "box=a+b+c+d", "click=1+1+1", "click=999+1"])
def test_a_mistake_on_the_page_is_a_sentence(
    page: tuple[Serving, CutOuts], get: Callable[[str], tuple[int, bytes]], query: str
) -> None:
    for verb in ("show", "keep"):
        status, told = get(f"/{page[1].key}/{verb}?{query}")
        assert status == 400
        assert told


def test_nobody_else_reaches_the_page(
    page: tuple[Serving, CutOuts], get: Callable[[str], tuple[int, bytes]]
) -> None:
    for path in ("/", "/show", f"/x{page[1].key}/keep?box=52+22+28+78", f"/{page[1].key}/other"):
        assert get(path)[0] == 404


def test_what_is_shown_is_the_object_bright_and_the_rest_dim() -> None:
    image, rod = frame()
    picture = shown(image, rod)
    assert (picture[60, 66] == image[60, 66]).all()
    assert (picture[10, 10] == image[10, 10] // 3).all()


@pytest.mark.slow
@needs_chromium
def test_a_box_drawn_in_a_browser_is_saved(page: tuple[Serving, CutOuts], tmp_path: Path) -> None:
    server, site = page
    with Browser(tmp_path / "profile", 900, 800) as browser:
        browser.open(f"{server.url}{site.key}/")
        browser.until("document.getElementById('boxes')?.getAttribute('viewBox') === '0 0 120 100'")
        left, top, wide = browser.value(
            "(() => { const r = document.getElementById('picture').getBoundingClientRect();"
            " return [r.left, r.top, r.width]; })()"
        )
        pixel = wide / 120
        x, y, width, height = (pixel * number for number in BOX)
        browser.mouse(
            (left + x, top + y),
            (left + x + 9, top + y + 9),
            (left + x + width, top + y + height),
            hold=True,
        )
        browser.until("!document.getElementById('keep').disabled")
        browser.value("document.getElementById('keep').click()")
        told = browser.until(
            "document.getElementById('told').textContent.match(/^saved .*images.(.*).png/)?.[1]"
        )
        assert browser.complaints == []
    mask = read_image(site.folder / "masks" / f"{told}.png", "")[:, :, 0] > 127
    assert overlap(mask, frame()[1]) > 0.9
