"""Image files of every kind become the picture a viewer shows, in 8 bits."""

import struct
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image, ImageFile

from adaptive_vtt.errors import InputError
from adaptive_vtt.utils.image_codec import declared_size
from adaptive_vtt.utils.image_files import MAX_PIXELS, read_image, read_size
from adaptive_vtt.utils.mask_values import as_mask, read_mask

STORED = np.kron(
    np.array([[[250, 0, 0], [0, 250, 0], [0, 0, 250]], [[0, 0, 0], [90, 90, 90], [250] * 3]]),
    np.ones((16, 16, 1)),
).astype(np.uint8)  # 32 x 48 RGB, no two corners alike

UPRIGHT: dict[int, Callable[[Any], Any]] = {
    1: lambda a: a,
    2: np.fliplr,
    3: lambda a: np.rot90(a, 2),
    4: np.flipud,
    5: lambda a: np.transpose(a, (1, 0, 2)),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: np.transpose(np.rot90(a, 2), (1, 0, 2)),
    8: lambda a: np.rot90(a, 1),
}
"""EXIF 2.3, tag 274: what makes the stored picture upright."""


def encoded(ending: str, image: np.ndarray, *options: int) -> bytes:
    bgr = image[:, :, [2, 1, 0, 3][: image.shape[2]]] if image.ndim == 3 else image
    done, data = cv2.imencode(ending, bgr, options)
    assert done
    return data.tobytes()


def written(kind: str, way: int, **options: Any) -> bytes:
    """A file of Pillow's that says which way it is stored; PNG's numbers run the other way."""
    exif, file = Image.Exif(), BytesIO()
    exif[274] = way
    exif.endian = ">" if kind == "PNG" else "<"
    Image.fromarray(STORED).save(file, kind, exif=exif, **options)
    return file.getvalue()


def tiff(way: int = 1, image: np.ndarray = STORED, extra: int | None = None) -> bytes:
    """An uncompressed TIFF; ``extra`` is what its fourth channel is (2: alpha)."""
    height, width, channels = image.shape
    bits = image.dtype.itemsize * 8
    tags = {
        256: width,
        257: height,
        258: None,
        259: 1,
        262: 2,
        273: 8,
        274: way,
        277: channels,
        278: height,
        279: image.nbytes,
    }
    if extra is not None:
        tags[338] = extra
    at = 8 + image.nbytes
    entries = b""
    for tag, value in sorted(tags.items()):
        if value is None:  # bits per channel do not fit into the entry
            entries += struct.pack("<HHII", tag, 3, channels, at)
        else:
            entries += struct.pack("<HHII", tag, 4 if tag in (273, 279) else 3, 1, value)
    bits_of_each = struct.pack(f"<{channels}H", *[bits] * channels)
    directory = struct.pack("<H", len(tags)) + entries + bytes(4)
    start = struct.pack("<I", at + len(bits_of_each))
    return b"II*\0" + start + image.tobytes() + bits_of_each + directory


def read(tmp_path: Path, data: bytes, name: str = "a.img") -> np.ndarray:
    (tmp_path / name).write_bytes(data)
    return read_image(tmp_path / name, "sample 'eye'")


# -- which way is up -----------------------------------------------------------------------


@pytest.mark.parametrize("way", UPRIGHT)
@pytest.mark.parametrize(
    "made",
    [
        partial(written, "JPEG", quality=100),
        partial(written, "PNG"),
        partial(written, "WEBP", lossless=True),
        tiff,
    ],
    ids=["jpeg", "png", "webp", "tiff"],
)
def test_exif_orientation_is_applied(
    tmp_path: Path, made: Callable[[int], bytes], way: int
) -> None:
    image = read(tmp_path, made(way))
    expected = UPRIGHT[way](STORED)
    assert image.shape == expected.shape
    assert np.abs(image.astype(int) - expected).mean() < 4  # JPEG blurs edges
    assert image.flags.c_contiguous
    assert read_size(tmp_path / "a.img", "here") == image.shape[:2]


# -- bits, palettes, transparency ----------------------------------------------------------


@pytest.mark.parametrize("ending", [".png", ".tif"])
def test_sixteen_bits_are_scaled_by_their_whole_range(tmp_path: Path, ending: str) -> None:
    deep = np.array([[0, 128, 129, 257, 1000, 32896, 65535]], np.uint16)
    image = read(tmp_path, encoded(ending, deep))
    assert image.tolist() == [[[0], [0], [1], [1], [4], [128], [255]]]
    dark = read(tmp_path, encoded(ending, np.full((2, 2), 1000, np.uint16)))
    assert dark.max() == 4  # not stretched to its own range


@pytest.mark.parametrize("depth", [np.uint8, np.uint16])
@pytest.mark.parametrize(
    "write", [lambda a: encoded(".png", a), lambda a: tiff(1, a, 2)], ids=["png", "tiff"]
)
def test_transparent_pixels_are_laid_on_black(
    tmp_path: Path, write: Callable[[np.ndarray], bytes], depth: type
) -> None:
    scale = 257 if depth is np.uint16 else 1
    pixels = [[[200, 100, 50, 255], [200, 100, 50, 128], [200, 100, 50, 0]]]
    image = read(tmp_path, write((np.array(pixels) * scale).astype(depth)))
    expected = [[[200, 100, 50], [100, 50, 25], [0, 0, 0]]]
    assert np.abs(image.astype(int) - expected).max() <= 1


def test_pixels_that_are_no_whole_numbers_are_refused(tmp_path: Path) -> None:
    data = encoded(".tif", np.zeros((4, 4), np.float32))
    with pytest.raises(InputError, match=r"sample 'eye': .* pixels of float32, expected 8 or 16"):
        read(tmp_path, data)


# -- sizes ---------------------------------------------------------------------------------

FILES = {
    "png": encoded(".png", STORED),
    "jpeg": written("JPEG", 1),
    "bmp": encoded(".bmp", STORED),
    "tiff": encoded(".tif", STORED),
    "webp": encoded(".webp", STORED, cv2.IMWRITE_WEBP_QUALITY, 80),
    "lossless webp": encoded(".webp", STORED, cv2.IMWRITE_WEBP_QUALITY, 101),
    "extended webp": written("WEBP", 1),
    "gif": encoded(".gif", STORED),
}


@pytest.mark.parametrize("kind", FILES)
def test_size_is_known_from_the_header(kind: str) -> None:
    assert declared_size(FILES[kind]) == (48, 32)


@pytest.mark.parametrize("kind", FILES)
def test_file_cut_short_anywhere_is_no_accident(kind: str) -> None:
    data = FILES[kind]
    for length in range(min(len(data), 400)):
        assert declared_size(data[:length]) in (None, (48, 32))


@pytest.mark.parametrize("kind", ["tiff", "extended webp"])
def test_image_declared_too_large_is_never_decoded(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda *_: pytest.fail("was decoded"))
    side = 12_000
    assert side * side > MAX_PIXELS
    data = bytearray(FILES[kind] if kind != "tiff" else tiff())
    if kind == "tiff":
        directory = struct.unpack_from("<I", data, 4)[0]
        for entry in range(2):
            struct.pack_into("<H", data, directory + 2 + entry * 12 + 8, side)
    else:
        data[24:30] = (side - 1).to_bytes(3, "little") * 2
    with pytest.raises(InputError, match=rf"is {side} x {side} pixels, over the limit of"):
        read(tmp_path, bytes(data))


# -- masks ---------------------------------------------------------------------------------


def test_mask_of_black_and_one_colour_is_inside_where_it_has_the_colour(tmp_path: Path) -> None:
    red = np.array([[[255, 0, 0], [0, 0, 0], [255, 0, 0], [0, 0, 0]]], np.uint8)
    (tmp_path / "m.png").write_bytes(encoded(".png", red))
    mask = read_mask(tmp_path / "m.png", "here")
    assert mask.dtype == np.bool_
    assert mask.tolist() == [[True, False, True, False]]


@pytest.mark.parametrize("mask", [np.zeros((2, 2)), np.zeros(4, bool), np.zeros((2, 2, 1), bool)])
def test_array_that_is_no_mask_is_named(mask: np.ndarray) -> None:
    with pytest.raises(InputError, match=r"here: expected a mask H x W of bool or uint8, got shap"):
        as_mask(mask, "here")
