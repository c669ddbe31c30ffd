"""Export all images of a space under all its relations, in the layout of MedMNIST-C's archives.

The layout is that of Di Salvo et al., MedMNIST-C (2024). An .npz per corruption has
``test_images`` (5 n x H x W, or x 3) and ``test_labels`` (5 n x L). All images at severity 1 come
first, then all at severity 2, and so on.
"""

import io
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...datasets.view import as_loaded
from ...engine.settings import same_audit
from ...errors import InputError, unexpected
from ...journal import Journal
from ...journal.facts import read_facts
from ...relations import FollowUp
from ...space import QuestionSpace
from ...types import IDENTITY, UNKNOWN, Image, Sample
from ...utils.files import safe_name, whole_folder

FAMILY = "medmnistc/"
KEYS = ("test_images", "test_labels")
CLASSES = 256
"""Most classes of an archive: its labels are bytes."""
KEPT_BYTES = 2**29
"""Memory for source images and their masks, which saves decoding them for every severity."""
BATCH_BYTES, MAX_BATCH = 2**24, 256
"""Most follow-ups that are made at a time, in bytes and in number."""

FollowUps = Callable[[Sequence[list[int]]], Iterator[Mapping[int, tuple[Sample, FollowUp]]]]
"""From the numbers of the images of every batch to their sources and follow-ups, batch by batch."""


def export_corrupted(
    journal: Journal | None,
    space: QuestionSpace,
    out: Path | str,
    *,
    follow_ups: FollowUps | None = None,
    advance: Callable[[int], object] = lambda images: None,
) -> dict[str, int]:
    """Write an archive per relation into a folder, which appears whole or not at all.

    "medmnistc/FLAG/NAME" goes into FLAG/NAME.npz, and any other relation into a file of its name;
    the identity has none. Labels: the number of the one concept that each image has (L = 1), else
    the truths of all concepts (L = C). Arrays are not compressed, so that readers can map them;
    KEPT_BYTES of source images are held in memory, and a batch of follow-ups.
    ``datasets.from_medmnist`` reads them back.

    Args:
        journal: Journal of the audit that must have this space, None for any space.
        space: The space whose follow-ups are written.
        out: The folder, new or empty.
        follow_ups: Makes the images, such as ``audit.rendering_ahead.Making`` in several processes.
            None makes them here.
        advance: Called for every image as it is written.

    Returns:
        File name -> number of images.

    Raises:
        InputError: The folder is in use, or the disk lacks the room. Images differ in size, or
            there are more than CLASSES classes. Truths are unknown or differ from those of the
            source image. Archives would share a name, or there is no relation but the identity.
        JournalError: The journal has another space.
    """
    if journal is not None:
        same_audit(read_facts(journal.facts()), space, {})
    names = [variant.relation.name for variant in space.variants]
    by_severity = sorted(range(len(names)), key=lambda place: space.variants[place].severity)
    relations = {
        name: [place for place in by_severity if names[place] == name]
        for name in dict.fromkeys(names)
        if name != IDENTITY
    }
    if not relations:
        raise InputError("corrupted: expected a relation other than identity, got none")
    archives = _archives([*relations])
    labels = _labels(space)
    if not space.dataset.has_images:
        raise InputError(f"corrupted: dataset {space.dataset.name!r} has no images")
    shape = _plain(space.dataset.sample(0).require_image()).shape
    places = [place for several in relations.values() for place in several]
    _check_room(Path(out), len(places) * len(labels) * int(np.prod(shape)))
    numbers = [k * len(space.variants) + place for place in places for k in range(len(labels))]
    made = follow_ups or partial(map, Sources(space, KEPT_BYTES).made)
    images = _images(space, made, numbers, shape, advance)
    written = {}
    with whole_folder(Path(out)) as folder:
        for name, several in relations.items():
            path, repeated = folder / archives[name], np.tile(labels, (len(several), 1))
            path.parent.mkdir(parents=True, exist_ok=True)
            with zipfile.ZipFile(path, "w") as archive:
                with archive.open(f"{KEYS[0]}.npy", "w", force_zip64=True) as member:
                    member.write(_header((len(repeated), *shape)))
                    for image in islice(images, len(repeated)):
                        member.write(np.ascontiguousarray(image).tobytes())
                with archive.open(f"{KEYS[1]}.npy", "w") as member:
                    member.write(_header(repeated.shape) + repeated.tobytes())
            written[archives[name]] = len(repeated)
    return written


def _archives(relations: Sequence[str]) -> dict[str, str]:
    """Return relation -> its archive, with "/" between folder and file.

    Raise InputError for two relations whose archives differ by case at most.
    """
    archives: dict[str, str] = {}
    taken: dict[str, str] = {}
    for name in relations:
        parts = name.removeprefix(FAMILY).split("/")
        archives[name] = f"{'/'.join(map(safe_name, parts))}.npz"
        other = taken.setdefault(archives[name].lower(), name)
        if other != name:
            wanted = "relations whose archives have different names"
            both = f"{other!r} and {name!r}, both {archives[name]}"
            raise unexpected("corrupted", wanted, both, "leave one of them out")
    return archives


def _labels(space: QuestionSpace) -> npt.NDArray[np.uint8]:
    """Return labels (n, L); see ``export_corrupted``.

    Raise InputError for more classes than bytes can number, and for unknown truths.
    """
    dataset = as_loaded(space.dataset)
    places, columns = np.arange(len(dataset)), np.arange(len(dataset.concepts))
    truths = dataset.truth(places[:, None], columns)
    if truths.shape[1] > 1 and ((truths == 1).sum(axis=1) == 1).all():
        if truths.shape[1] > CLASSES:
            wanted = f"at most {CLASSES} classes, which labels of one byte number"
            raise unexpected("corrupted", wanted, truths.shape[1])
        return (truths == 1).argmax(axis=1)[:, None].astype(np.uint8)
    if (truths == UNKNOWN).any():
        row, column = np.argwhere(truths == UNKNOWN)[0].tolist()
        got = f"sample {dataset.sample_id(row)!r} with unknown {dataset.concepts[column]!r}"
        raise unexpected("corrupted", "images of one class each, or all truths known", got)
    return truths.astype(np.uint8)


def _plain(image: Image) -> Image:
    """Return an image as archives store it: grey images have no third axis."""
    return image[:, :, 0] if image.shape[2] == 1 else image


class Sources:
    """Cache of the samples of a ``space``, of at most ``free_bytes``."""

    def __init__(self, space: QuestionSpace, free_bytes: int) -> None:
        self.space, self._free_bytes = space, free_bytes
        self._kept: dict[int, Sample] = {}

    def __getitem__(self, index: int) -> Sample:
        if index in self._kept:
            return self._kept[index]
        sample = self.space.dataset.sample(index)
        image = sample.require_image()
        size = image.nbytes + len(sample.masks) * image[:, :, 0].size  # if relations look at them
        if size <= self._free_bytes:
            self._free_bytes -= size
            self._kept[index] = sample
        return sample

    def made(self, images: Sequence[int]) -> dict[int, tuple[Sample, FollowUp]]:
        """Return the source and the follow-up of every image."""
        sources = {image: self[self.space.numbering.image_parts(image)[0]] for image in images}
        return {image: (s, self.space.made_of(s, image)) for image, s in sources.items()}


def _images(
    space: QuestionSpace,
    made: FollowUps,
    numbers: list[int],
    shape: tuple[int, ...],
    advance: Callable[[int], object],
) -> Iterator[Image]:
    several = min(MAX_BATCH, BATCH_BYTES // int(np.prod(shape)) or 1)
    batches = [numbers[k : k + several] for k in range(0, len(numbers), several)]
    for pairs in made(batches):
        for number, (source, follow_up) in pairs.items():
            relation = space.variants[space.numbering.image_parts(number)[1]].relation
            image = _plain(follow_up.require_image())
            if image.shape != shape:
                where = f"corrupted: sample {source.id!r} under {relation.name!r}"
                got = f"{image.shape}: an archive holds one size"
                raise unexpected(where, f"an image of {shape}, as the first one", got)
            if any(relation.expect(truth, follow_up) != truth for truth in (0, 1)):
                raise InputError(
                    f"corrupted: {relation.name!r} changes what is right about sample "
                    f"{source.id!r}: expected relations that leave answers as they are"
                )
            advance(1)
            yield image


def _header(shape: tuple[int, ...]) -> bytes:
    """Return the bytes before the numbers of an .npy file of uint8."""
    buffer = io.BytesIO()
    described = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, described)
    return buffer.getvalue()


def _check_room(out: Path, size: int) -> None:
    existing = next(folder for folder in [out, *out.absolute().parents] if folder.exists())
    free = shutil.disk_usage(existing).free
    if size > free:
        raise InputError(
            f"corrupted: expected {size / 1e9:.1f} GB free for the archives at {str(out)!r}, got "
            f"{free / 1e9:.1f}; leave relations or images out"
        )
