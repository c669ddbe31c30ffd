"""All images of a space under all its relations, as MedMNIST-C's archives have them.

Layout: Di Salvo et al., MedMNIST-C (2024), and its public archives: an .npz per corruption with
``test_images`` (5 n x H x W, or x 3) and ``test_labels`` (5 n x L), all images at severity 1
first, then all at severity 2, and so on.
"""

import io
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...datasets.view import as_loaded
from ...engine.settings import same_audit
from ...errors import InputError
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
"""Source images, with their masks, that are kept, so that they are decoded once and not for every
severity of every relation; those beyond it are decoded anew."""
BATCH_BYTES, MAX_BATCH = 2**24, 256
"""Follow-ups that are made at a time, in bytes and in number, at most."""

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
    """Writes an archive per relation into the folder ``out``; file name -> number of images.

    ``space``: whose follow-ups these are; ``journal``: of the audit that it has to be the space of,
    None where there was none. "medmnistc/FLAG/NAME" goes into FLAG/NAME.npz, and any other relation
    into a file of its name; the identity has none. Labels: the number of the one concept that each
    image has (L = 1), else the truths of all concepts (L = C). Arrays are stored as they are, not
    compressed, so that readers can map them; KEPT_BYTES of source images are held in memory, and a
    batch of follow-ups. ``datasets.from_medmnist`` reads them back. The folder is there whole or
    not at all.

    ``follow_ups`` makes the images, such as ``audit.making.Making`` in several processes;
    None: they are made here. ``advance`` is told of every image as it is written.

    Raises InputError for a folder in use, more bytes than are free, images of different sizes, more
    than CLASSES classes, truths that are unknown or not those of the source image, relations whose
    archives would have one name, and spaces of the identity alone; JournalError for a journal of
    another space.
    """
    if journal is not None:
        same_audit(read_facts(journal.facts()), space, {})
    relations = _by_relation(space)
    files = _files(relations)
    labels, shape = _labels(space), _shape(space)
    variants = sum(map(len, relations.values()))
    _refuse_no_room(Path(out), variants * len(labels) * int(np.prod(shape)))
    numbers = [
        index * len(space.variants) + place
        for places in relations.values()
        for place in places
        for index in range(len(labels))
    ]
    made = follow_ups or partial(map, Sources(space, KEPT_BYTES).made)
    images = _images(space, made, numbers, shape, advance)
    written = {}
    with whole_folder(Path(out)) as folder:
        for name, places in relations.items():
            path = folder / files[name]
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, images, shape, np.tile(labels, (len(places), 1)))
            written[files[name]] = len(places) * len(labels)
    return written


def _by_relation(space: QuestionSpace) -> dict[str, list[int]]:
    """Relation -> the places of its variants, by severity."""
    found: dict[str, list[int]] = {}
    for place, variant in enumerate(space.variants):
        if variant.relation.name != IDENTITY:
            found.setdefault(variant.relation.name, []).append(place)
    if not found:
        raise InputError("corrupted: expected a relation beside identity, found none")
    severity = [variant.severity for variant in space.variants]
    return {name: sorted(places, key=severity.__getitem__) for name, places in found.items()}


def _files(relations: Iterable[str]) -> dict[str, str]:
    """Relation -> its archive, with "/" between folder and file. Raises InputError for two with one
    archive, whatever a file system makes of case."""
    found: dict[str, str] = {}
    taken: dict[str, str] = {}
    for name in relations:
        parts = name.removeprefix(FAMILY).split("/")
        found[name] = f"{'/'.join(map(safe_name, parts))}.npz"
        other = taken.setdefault(found[name].lower(), name)
        if other != name:
            raise InputError(
                f"corrupted: expected relations whose archives have names of their own, got "
                f"{other!r} and {name!r}, both {found[name]}; leave one of them out"
            )
    return found


def _labels(space: QuestionSpace) -> npt.NDArray[np.uint8]:
    """n x L; see ``export_corrupted``. Raises InputError for more classes than bytes can number."""
    dataset = as_loaded(space.dataset)
    places, columns = np.arange(len(dataset)), np.arange(len(dataset.concepts))
    truths = dataset.truth(places[:, None], columns)
    if truths.shape[1] > 1 and ((truths == 1).sum(axis=1) == 1).all():
        if truths.shape[1] > CLASSES:
            raise InputError(
                f"corrupted: expected at most {CLASSES} classes, which labels of one byte number, "
                f"got {truths.shape[1]}"
            )
        return (truths == 1).argmax(axis=1)[:, None].astype(np.uint8)
    if (truths == UNKNOWN).any():
        row, column = np.argwhere(truths == UNKNOWN)[0].tolist()
        raise InputError(
            "corrupted: expected images of one class each, or all truths known, got sample "
            f"{dataset.sample_id(row)!r} of which {dataset.concepts[column]!r} is unknown"
        )
    return truths.astype(np.uint8)


def _shape(space: QuestionSpace) -> tuple[int, ...]:
    """That of the first image, H x W or H x W x 3."""
    if not space.dataset.has_images:
        raise InputError(f"corrupted: dataset {space.dataset.name!r} has no images")
    return _plain(space.dataset.sample(0).require_image()).shape


def _plain(image: Image) -> Image:
    """Grey images have no third axis there."""
    return image[:, :, 0] if image.shape[2] == 1 else image


class Sources:
    """The samples of a ``space``, as many of which are kept as fit into ``room`` bytes."""

    def __init__(self, space: QuestionSpace, room: int) -> None:
        self.space, self._room = space, room
        self._kept: dict[int, Sample] = {}

    def __getitem__(self, index: int) -> Sample:
        if index in self._kept:
            return self._kept[index]
        found = self.space.dataset.sample(index)
        image = found.require_image()
        size = image.nbytes + len(found.masks) * image[:, :, 0].size  # once relations look at them
        if size <= self._room:
            self._room -= size
            self._kept[index] = found
        return found

    def made(self, images: Sequence[int]) -> dict[int, tuple[Sample, FollowUp]]:
        """The source and the follow-up of every image."""
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
    batches = [numbers[at : at + several] for at in range(0, len(numbers), several)]
    for pairs in made(batches):
        for number, (source, follow_up) in pairs.items():
            relation = space.variants[space.numbering.image_parts(number)[1]].relation
            image = _plain(follow_up.require_image())
            if image.shape != shape:
                raise InputError(
                    f"corrupted: sample {source.id!r} under {relation.name!r}: expected an image "
                    f"of {shape}, as the first one, got {image.shape}: an archive holds one size"
                )
            if any(relation.expect(truth, follow_up) != truth for truth in (0, 1)):
                raise InputError(
                    f"corrupted: {relation.name!r} changes what is right about sample "
                    f"{source.id!r}: expected relations that leave answers as they are"
                )
            advance(1)
            yield image


def _write(
    path: Path, images: Iterator[Image], shape: tuple[int, ...], labels: npt.NDArray[np.uint8]
) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        with archive.open(f"{KEYS[0]}.npy", "w", force_zip64=True) as member:
            member.write(_header((len(labels), *shape)))
            for image in islice(images, len(labels)):
                member.write(np.ascontiguousarray(image).tobytes())
        with archive.open(f"{KEYS[1]}.npy", "w") as member:
            member.write(_header(labels.shape) + np.ascontiguousarray(labels).tobytes())


def _header(shape: tuple[int, ...]) -> bytes:
    """What stands before the numbers of an .npy file of uint8."""
    buffer = io.BytesIO()
    described = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, described)
    return buffer.getvalue()


def _refuse_no_room(out: Path, size: int) -> None:
    there = next(folder for folder in [out, *out.absolute().parents] if folder.exists())
    free = shutil.disk_usage(there).free
    if size > free:
        raise InputError(
            f"corrupted: expected {size / 1e9:.1f} GB free for the archives at {str(out)!r}, found "
            f"{free / 1e9:.1f}; leave relations or images out"
        )
