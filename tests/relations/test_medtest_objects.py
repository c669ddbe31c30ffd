"""MedTest's objects: cut-outs from folders, drawn ones, and where they are put."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from adaptive_vtt.config import read_spec
from adaptive_vtt.config.building import build_space
from adaptive_vtt.errors import InputError
from adaptive_vtt.relations import medtest
from adaptive_vtt.relations.medtest import Cutout, FieldFiles, Folder
from adaptive_vtt.relations.medtest.cutouts import cut
from adaptive_vtt.relations.medtest.drawn import STOOLS, DrawnTool
from adaptive_vtt.relations.medtest.film import bleed
from adaptive_vtt.relations.medtest.placement import near_its_place
from adaptive_vtt.relations.medtest.scene import Scene
from adaptive_vtt.types import Image, Mask, Sample
from adaptive_vtt.utils.random_streams import generator

SIDE = 160
BLUE = (20, 40, 200)


def disc(x: float, y: float, radius: float, side: int = SIDE) -> Mask:
    rows, columns = np.mgrid[:side, :side]
    return np.hypot(columns - x * side, rows - y * side) < radius * side


def tissue(polyp: Mask | None = None, view: Mask | None = None) -> Sample:
    """Flat tissue, so that whatever differs from it has been added."""
    image = np.full((SIDE, SIDE, 3), (190, 110, 90), np.uint8)
    if view is not None:
        image[~view] = 0
    return Sample("s", image, {}, masks={} if polyp is None else {"polyp": polyp})


def rod(horizontal: bool = False) -> tuple[Image, Mask]:
    """A picture 120 x 100 with a blue rod that enters from below (or from the right)."""
    image = np.full((100, 120, 3), (170, 90, 80), np.uint8)
    mask = np.zeros((100, 120), bool)
    if horizontal:
        mask[30:42, 50:] = True
    else:
        mask[40:, 60:72] = True
    image[mask] = BLUE
    return image, mask


def write(folder: Path, image: Image, mask: Mask, stem: str = "a") -> None:
    for kind, picture in (("images", image[:, :, ::-1]), ("masks", mask.astype(np.uint8) * 255)):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(folder / kind / f"{stem}.png"), picture)


def drawn_from(folder: Folder) -> Cutout:
    return folder.cutout(np.random.default_rng(0))


def apply(relation: Any, sample: Sample, severity: int, seed: int = 0) -> tuple[Image, Any]:
    follow_up = relation.apply(sample, severity, generator(seed, relation.name))
    assert follow_up.image is not None
    return follow_up.image, follow_up.details


def difference(image: Image, sample: Sample) -> Mask:
    assert sample.image is not None
    return (image != sample.image).any(axis=2)


# -- folders -------------------------------------------------------------------------------


def test_folder_gives_the_object_and_how_it_lay(tmp_path: Path) -> None:
    write(tmp_path, *rod())
    cutout = drawn_from(Folder(tmp_path))
    assert len(Folder(tmp_path)) == 1
    assert cutout.colour.shape == (60, 12, 3)
    assert (cutout.colour == BLUE).all()
    assert (cutout.alpha == 1).all()
    assert cutout.position == pytest.approx((65.5 / 120, 98 / 100), abs=0.01)  # lower edge
    assert cutout.tail[:, 1].min() >= 60 - 3


def test_the_largest_box_of_kvasir_instrument_chooses_the_object(tmp_path: Path) -> None:
    image, mask = rod()
    mask[10:20, 10:14] = True  # a second, smaller tool
    write(tmp_path, image, mask)
    boxes = [
        {"label": "instrument", "xmin": 10, "ymin": 10, "xmax": 13, "ymax": 19},
        {"label": "instrument", "xmin": 60, "ymin": 40, "xmax": 71, "ymax": 99},
    ]
    (tmp_path / "bboxes.json").write_text(json.dumps({"a": {"bbox": boxes}}))
    assert drawn_from(Folder(tmp_path)).area == 60 * 12
    (tmp_path / "bboxes.json").unlink()
    assert drawn_from(Folder(tmp_path)).area == 60 * 12 + 40


def test_picture_without_its_mask_is_named(tmp_path: Path) -> None:
    write(tmp_path, *rod(), stem="a")
    write(tmp_path, *rod(), stem="b")
    (tmp_path / "masks" / "b.png").unlink()
    with pytest.raises(InputError, match=r"cut-outs '.*masks': no mask for 'b.png'"):
        Folder(tmp_path)


@pytest.mark.parametrize("text", ["[", '{"a": {}}', '{"a": {"bbox": [{"xmin": 1}]}}', "[1]"])
def test_broken_boxes_are_one_sentence(tmp_path: Path, text: str) -> None:
    write(tmp_path, *rod())
    (tmp_path / "bboxes.json").write_text(text)
    with pytest.raises(InputError, match=r"bboxes.json: expected \{id: \{'bbox'"):
        Folder(tmp_path)


def test_the_users_cut_outs_are_what_is_pasted(tmp_path: Path) -> None:
    write(tmp_path, *rod())
    own = Folder(tmp_path)
    family = {r.name: r for r in medtest.relations(instruments=own, feces=own, blood=own)}
    for name in ("medtest/instrument", "medtest/feces", "medtest/blood"):
        image, details = apply(family[name], tissue(), 5)
        pasted = image[details["mask"]].astype(int)
        assert details["pieces"][0]["draws"] == {"file": "a"}
        assert np.median(pasted[:, 2] - pasted[:, 0]) > 50  # blue


# -- placement -----------------------------------------------------------------------------


def test_an_instrument_stays_near_its_place_and_direction() -> None:
    cutout = cut(*rod(), "rod")
    scene = Scene.of(tissue(), None)
    for seed in range(8):
        pose = near_its_place(cutout, scene, 0.05, np.random.default_rng(seed))
        assert abs(pose.at[0] / SIDE - cutout.position[0]) <= 0.1
        assert pose.at[1] >= SIDE  # the cut end is outside
        assert abs(pose.turn) <= 15
        assert pose.free


@pytest.mark.parametrize("horizontal", [False, True])
def test_an_instrument_enters_from_the_edge_of_an_irregular_view(horizontal: bool) -> None:
    view = disc(0.5, 0.5, 0.44)
    sample, image = tissue(view=view), None
    cutout = cut(*rod(horizontal), "rod")
    relation = medtest.Instrument(Always(cutout))
    inner = cv2.erode(view.view(np.uint8), np.ones((5, 5), np.uint8)).view(bool)
    for seed in range(3):
        image, details = apply(relation, sample, 4, seed)
        assert (details["mask"] & view & ~inner).any()
        rows, columns = np.nonzero(details["mask"])
        middle = (columns.mean() / SIDE, rows.mean() / SIDE)
        assert middle[0 if horizontal else 1] > 0.5
        assert not difference(image, sample)[~view].any()


class Always:
    """A source of one cut-out."""

    def __init__(self, cutout: Cutout) -> None:
        self._cutout = cutout

    def cutout(self, rng: np.random.Generator) -> Cutout:
        return self._cutout


@pytest.mark.parametrize("severity", [1, 5])
def test_instruments_have_the_size_of_their_severity(severity: int) -> None:
    for seed in range(3):
        _, details = apply(medtest.Instrument(), tissue(), severity, seed)
        assert 0.02 + 0.02 * (severity - 1) <= details["wanted_share"] <= 0.02 + 0.02 * severity
        # a part of the sheath stays outside the view
        assert 0.4 * details["wanted_share"] < details["pieces"][0]["share"] < 1.1 * 0.12


@pytest.mark.slow
@pytest.mark.parametrize("name", ["instrument", "feces", "blood"])
def test_objects_make_room_for_the_polyp_wherever_it_is(name: str) -> None:
    relation = {r.name: r for r in medtest.relations()}[f"medtest/{name}"]
    for seed in range(10):
        x, y = np.random.default_rng(seed).uniform(0.25, 0.75, 2)
        polyp = disc(x, y, 0.16)
        sample = tissue(polyp)
        image, details = apply(relation, sample, 4, seed)
        assert not (difference(image, sample) & polyp).any()
        assert details["adds"] == name
        assert all(piece["free"] for piece in details["pieces"])


@pytest.mark.parametrize("name", ["feces", "blood"])
def test_a_polyp_that_leaves_no_room_is_still_not_covered(name: str) -> None:
    relation = {r.name: r for r in medtest.relations()}[f"medtest/{name}"]
    polyp = disc(0.5, 0.5, 0.6)
    sample = tissue(polyp)
    image, details = apply(relation, sample, 5)
    assert not (difference(image, sample) & polyp).any()
    assert not all(piece["free"] for piece in details["pieces"])
    whole = tissue(np.ones((SIDE, SIDE), bool))
    image, details = apply(relation, whole, 5)
    assert not difference(image, whole).any()
    assert details["adds"] == ""


def test_stool_may_lie_on_the_polyp_where_that_is_wished() -> None:
    polyp = disc(0.5, 0.5, 0.6)
    sample = tissue(polyp)
    relations = medtest.relations(stool_anywhere=True)
    feces = next(each for each in relations if each.name == "medtest/feces")
    image, _ = apply(feces, sample, 5)
    assert (difference(image, sample) & polyp).any()
    assert feces.fingerprint == f"{medtest.Feces().fingerprint}; anywhere"


def test_brightness_follows_the_target() -> None:
    source = Always(cut(*rod(), "rod"))
    bright, dark = tissue(), tissue()
    assert dark.image is not None
    dark.image[:] = dark.image // 2
    levels = []
    for sample in (bright, dark):
        image, details = apply(medtest.Instrument(source), sample, 5)
        levels.append(float(image[details["mask"], 2].mean()))
    # 170 is the source's brightness: ratios 190/170 and 95/170 of blue 200
    assert levels == pytest.approx([223, 112], abs=6)


# -- drawn objects ---------------------------------------------------------------------------


def test_drawn_stains_end_within_their_canvas() -> None:
    # otherwise they would show a straight edge
    rng = np.random.default_rng(0)
    pieces = [draw(rng) for draw in STOOLS.values() for _ in range(3)]
    for piece in pieces:
        border = np.concatenate([piece.alpha[[0, -1]].ravel(), piece.alpha[:, [0, -1]].ravel()])
        assert border.max() < 0.15
        assert piece.area > 500


def test_drawn_tools_dim_with_depth() -> None:
    for seed in range(4):
        tool = DrawnTool().cutout(np.random.default_rng(seed))
        near, far = (
            tool.colour[:, columns][tool.alpha[:, columns] > 0.9].mean()
            for columns in (slice(20, 120), slice(200, 300))
        )
        assert far < 0.9 * near


# -- blood that runs ---------------------------------------------------------------------------


def bled(image: Image, share: float = 0.08, seed: int = 0) -> tuple[Image, Any]:
    """An image with blood from two places, and how opaque that is."""
    scene = Scene.of(Sample("s", image, {}), None)
    return bleed(scene, share, 0.05, np.array([seed, seed + 1]))[:2]


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_blood_covers_about_its_share_and_is_red(share: float) -> None:
    sample = tissue()
    assert sample.image is not None
    for seed in range(3):
        image, opacity = bled(sample.image, share, seed)
        assert 0.6 * share < np.mean(opacity > 0.05) < 1.4 * share
        red, green, blue = image[opacity > 0.9].mean(axis=0)
        assert red > 3 * max(green, blue)
        edge = image[(opacity > 0.8) & (opacity < 0.95)]
        assert edge[:, 0].mean() < 0.7 * 190  # darker than the tissue's own red


def test_blood_keeps_off_the_open_lumen() -> None:
    image = tissue().image
    assert image is not None
    lumen = disc(0.5, 0.5, 0.2)
    image[lumen] = (30, 15, 12)
    for seed in range(3):
        after, opacity = bled(image, 0.3, seed)
        assert (after[disc(0.5, 0.5, 0.17)] == image[disc(0.5, 0.5, 0.17)]).all()
        assert np.mean(opacity > 0.05) > 0.15


# -- files of a spec -------------------------------------------------------------------------


def spec_of(folder: Path, medtest: str, relations: str = '["medtest"]') -> Any:
    (folder / "SPEC.toml").write_text(
        '[dataset]\nkind = "adaptive_vtt.experiments.medtest.phantoms:frames"\n'
        '[dataset.options]\ncount = 2\nsize = 64\npolyps = 1.0\nconcepts = ["polyp"]\n'
        '[model]\nkind = "simulated"\ntarget = "biased"\n'
        f"[space]\nrelations = {relations}\n{medtest}"
    )
    return read_spec(folder / "SPEC.toml")


def test_cut_outs_and_the_field_come_from_the_spec(tmp_path: Path) -> None:
    write(tmp_path / "tools", *rod())
    view = np.zeros((64, 64), np.uint8)
    view[:, :32] = 255
    cv2.imwrite(str(tmp_path / "view.png"), view)
    table = '[space.medtest]\ninstruments = "tools"\nfield = "view.png"\n'
    space = build_space(spec_of(tmp_path, table), tmp_path)
    drawn = build_space(spec_of(tmp_path, ""), tmp_path)
    relations = {v.relation.name: v.relation for v in space.variants}
    sample = space.dataset.sample(0)
    image, details = apply(relations["medtest/instrument"], sample, 5)
    assert details["pieces"][0]["draws"] == {"file": "a"}
    assert not difference(image, sample)[:, 32:].any()
    assert space.fingerprint != drawn.fingerprint
    for option in ("clipped = true", "stool_anywhere = true"):
        other = build_space(spec_of(tmp_path, f"[space.medtest]\n{option}\n"), tmp_path)
        assert other.fingerprint != drawn.fingerprint
    cv2.imwrite(str(tmp_path / "tools" / "images" / "a.png"), rod()[0][:, :, ::-1] // 2)
    assert build_space(spec_of(tmp_path, table), tmp_path).fingerprint != space.fingerprint


def test_files_for_medtest_without_medtest_are_refused(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, '[space.medtest]\nblood = "blood"\n', '["rotation"]')
    with pytest.raises(InputError, match=r"space.medtest: expected medtest or .* among"):
        build_space(spec, tmp_path)
    spec = spec_of(tmp_path, "[space.medtest]\nsimilar = 0.5\n")
    with pytest.raises(InputError, match="similar: expected a folder of instruments, feces or"):
        build_space(spec, tmp_path)


def test_fields_are_found_by_the_samples_names(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"visible field '.*': expected a mask or a folder"):
        FieldFiles(tmp_path)
    cv2.imwrite(str(tmp_path / "a.png"), disc(0.5, 0.5, 0.3).astype(np.uint8) * 255)
    fields = FieldFiles(tmp_path)
    for name in ("a", "a.jpg", "folder/a.jpg"):
        assert np.array_equal(fields(replace(tissue(), id=name)), disc(0.5, 0.5, 0.3))
    with pytest.raises(InputError, match=r"visible field '.*': no mask for 'b'"):
        fields(replace(tissue(), id="b"))
