"""``avtt list relations FAMILY`` and ``avtt preview``: relations named and drawn."""

import base64
import re
from pathlib import Path

import cv2
import numpy as np
import pytest

from adaptive_vtt.errors import InputError
from adaptive_vtt.relations import names, resolve
from adaptive_vtt.relations.graded import Rotation
from adaptive_vtt.utils.image_codec import png
from tests.helpers.command_line import refused, run, shown
from tests.helpers.report_pages import Tags

IMAGE = np.random.default_rng(0).integers(0, 256, (120, 100, 3), dtype=np.uint8)
MASK = np.zeros((120, 100), np.uint8)
MASK[30:60, 40:80] = 255


@pytest.fixture
def image(tmp_path: Path) -> str:
    (tmp_path / "frame <1>.png").write_bytes(png(IMAGE))
    return str(tmp_path / "frame <1>.png")


@pytest.fixture
def mask(tmp_path: Path) -> str:
    (tmp_path / "mask.png").write_bytes(png(MASK))
    return str(tmp_path / "mask.png")


class Page(Tags):
    """A page, and its pictures by their descriptions."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.read_text(encoding="utf-8"))
        self.pictures = {str(a["alt"]): a for tag, a in self.tags if tag == "img"}

    def picture(self, description: str) -> np.ndarray:
        data = base64.b64decode(str(self.pictures[description]["src"]).partition(",")[2])
        decoded = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
        assert decoded is not None
        return decoded[:, :, ::-1]


# -- lists --------------------------------------------------------------------------------


def test_list_of_a_family_names_its_relations_and_what_they_do() -> None:
    lines = shown("list", "relations", "medtest")
    for relation in resolve(["medtest"]):
        assert re.search(rf"^{relation.name} +1,2,3,4,5  +\w", lines, re.M)
    assert "rotation" not in lines
    assert "did you mean 'medtest'?" in refused("list", "relations", "medtst")
    sentence = refused("list", "oracles", "medtest")
    assert "after 'relations' alone, got it after 'oracles'" in sentence


# -- sheets -------------------------------------------------------------------------------


def test_page_shows_every_severity_of_every_relation_and_needs_nothing_else(
    image: str, tmp_path: Path
) -> None:
    out = tmp_path / "sheet.html"
    assert run("preview", image, "--out", str(out)) == 0
    by_default = {description.partition(",")[0] for description in Page(out).pictures}
    assert by_default == {"The source image"} | {name for name in names() if "/" not in name}
    chosen = ["medtest/saturation", "imagenet-c/fog"]
    assert run("preview", image, "--relations", ",".join(chosen), "--out", str(out)) == 0
    page = Page(out)
    expected = {f"{r.name}, severity {s}" for r in resolve(chosen) for s in r.severities}
    assert page.pictures.keys() == {"The source image"} | expected
    addresses = [str(a[k]) for _, a in page.tags for k in ("src", "href") if k in a]
    assert all(re.match("#f|data:image/(png|jpeg);base64,", address) for address in addresses)
    assert all(page.pictures[e]["loading"] == "lazy" for e in expected)
    assert "frame <1>.png" in page.text
    assert "100 x 120 pixels" in page.text
    bright = [page.picture(f"medtest/saturation, severity {s}").mean() for s in (1, 5)]
    assert bright[0] < bright[1]


def test_prompts_need_a_mask_and_say_so(image: str, mask: str, tmp_path: Path) -> None:
    out = tmp_path / "sheet.html"
    assert run("preview", image, "--relations", "prompt", "--out", str(out)) == 0
    without = Page(out)
    assert without.pictures.keys() == {"The source image"}
    assert without.text.count("nothing is marked; --mask says what") == 5
    assert run("preview", image, "--relations", "prompt", "--mask", mask, "--out", str(out)) == 0
    given = Page(out)
    assert len(given.pictures) == 6
    assert "[40, 30, 80, 60]" in given.text
    assert "nothing is marked" not in given.text


def test_relations_keep_off_the_mask(image: str, mask: str, tmp_path: Path) -> None:
    out = tmp_path / "sheet.html"
    arguments = ["preview", image, "--relations", "identity,medtest/text", "--out", str(out)]
    assert run(*arguments, "--mask", mask) == 0
    page = Page(out)
    after, before = (
        page.picture(n)[34:56, 44:76].astype(int)
        for n in ("medtest/text, severity 5", "identity, severity 0")
    )
    assert np.abs(after - before).mean() < 5  # of noise, but for what JPEG makes of it


def test_pictures_are_shown_at_their_size(tmp_path: Path) -> None:
    large = np.random.default_rng(0).integers(0, 256, (300, 500, 3), dtype=np.uint8)
    path, out = tmp_path / "frame.png", tmp_path / "sheet.html"
    path.write_bytes(png(large))
    assert run("preview", str(path), "--relations", "identity", "--out", str(out)) == 0
    assert Page(out).picture("identity, severity 0").shape == large.shape
    arguments = ["preview", str(path), "--relations", "identity", "--out"]
    assert run(*arguments, str(out.with_suffix(".png"))) == 0
    sheet = cv2.imread(str(out.with_suffix(".png")))
    assert sheet is not None
    for top in (38, 38 + 300 + 38):  # the source, and what is made of it
        assert np.array_equal(sheet[top : top + 300, 16:516], large[:, :, ::-1])


@pytest.mark.slow
def test_options_of_relations_come_from_the_command_line_or_a_spec(tmp_path: Path) -> None:
    image = str(tmp_path / "small.png")
    Path(image).write_bytes(png(IMAGE[:32, :32]))
    spec = tmp_path / "SPEC.toml"
    spec.write_text(
        '[dataset]\nkind = "masks"\npath = "gone"\n[model]\nkind = "simulated"\ntarget = "biased"\n'
        '[space]\nrelations = ["medtest"]\n[space.medtest]\nclipped = true\n'
    )

    def over_exposed(*options: str) -> bytes:
        out = tmp_path / "sheet.html"
        assert run("preview", image, "--out", str(out), *options) == 0
        return Page(out).picture("medtest/saturation, severity 5").tobytes()

    flag = ["--relations", "medtest", "--set", "space.medtest.clipped=true"]
    clipped = over_exposed(*flag)
    assert over_exposed("--spec", str(spec)) == clipped
    other = over_exposed("--spec", str(spec), "--set", "space.medtest.clipped=false")
    assert other != clipped


def test_relation_that_refuses_an_image_is_a_note(
    image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise InputError("expected an image of the moon")

    monkeypatch.setattr(Rotation, "apply", refuse)
    out = tmp_path / "sheet.html"
    assert run("preview", image, "--relations", "identity,rotation", "--out", str(out)) == 0
    page = Page(out)
    assert page.pictures.keys() == {"The source image", "identity, severity 0"}
    assert page.text.count("expected an image of the moon") == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--out", "sheet.gif"], "--out: expected a file ending in .png or .html, got"),
        (["--relations", "medtest,medtest/blur"], "'medtest/blur' stands twice"),
        (["--set", "space.medtest.clipped=true"], "space.medtest: expected medtest or medtest/"),
        (["--relations", "medtest", "--set", "space.medtest.clippd=true"], "unknown field 'clip"),
        (["--spec", "gone.toml"], "gone.toml"),
        (["--relations", "medtest/blurr"], "did you mean 'medtest/blur'?"),
        (["--mask", "gone.png"], "--mask: cannot read image 'gone.png': it does not exist"),
        (["--mask", "{small}"], "expected a mask as large as its image, 120 x 100 (height x wid"),
    ],
)
def test_mistakes_get_one_sentence(
    image: str, tmp_path: Path, options: list[str], sentence: str
) -> None:
    (tmp_path / "small.png").write_bytes(png(MASK[:50]))
    filled = [option.replace("{small}", str(tmp_path / "small.png")) for option in options]
    out = [] if "--out" in filled else ["--out", str(tmp_path / "sheet.html")]
    assert sentence in refused("preview", image, *filled, *out)
    assert not (tmp_path / "sheet.html").exists()
