"""Export all images of a space under all its relations, as archives like those of MedMNIST-C.

MedMNIST-C (Di Salvo et al., 2024) has one .npz per corruption. Its ``test_images`` have shape
(5 n, H, W), or (5 n, H, W, 3), and its ``test_labels`` (5 n, L). All n images at severity 1 come
first, then all at severity 2, and so on.
"""

import io
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
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
"""Maximum number of classes, as labels are bytes."""
KEPT_BYTES = 2**29
"""Memory in which source images and masks are kept, so that few are decoded again."""
BATCH_BYTES, MAX_BATCH = 2**24, 256
"""Maximum size of a batch of follow-ups, in bytes and in number."""

FollowUps = Callable[[Sequence[list[int]]], Iterator[Mapping[int, tuple[Sample, FollowUp]]]]
"""Function from batches of image numbers to, batch by batch, number -> source and follow-up."""


def export_corrupted(
    journal: Journal | None,
    space: QuestionSpace,
    out: Path | str,
    *,
    follow_ups: FollowUps | None = None,
    advance: Callable[[int], object] = lambda images: None,
) -> dict[str, int]:
    """Write an archive per relation into a folder.

    The folder is written whole or not at all. Relation "medmnistc/FLAG/NAME" is written to
    FLAG/NAME.npz, and any other relation to a file of its name, except the identity. If every image
    has one concept, labels are the numbers of these concepts (L = 1). Else they are the truths of
    all C concepts (L = C). Arrays are not compressed, so that readers can map them into memory.
    ``datasets.from_medmnist`` reads an archive.

    Args:
        journal: The journal of an audit that must have this space. None: any space will do.
        space: The space whose follow-ups are written.
        out: The folder, new or empty.
        follow_ups: Renders the images, such as ``audit.rendering_ahead.Making``, which uses several
            processes. Default None: this process does.
        advance: Called for every image as it is written.

    Returns:
        File name -> number of images.

    Raises:
        InputError: The folder is in use, or the disk is too full. Or images differ in size, there
            are more than CLASSES classes, or truths are unknown or changed by a relation. Or two
            archives would share a name, or the identity is the only relation.
        JournalError: The journal is of another space.
    """
    if journal is not None:
        same_audit(read_facts(journal.facts()), space, {})
    relations: dict[str, list[int]] = {v.relation.name: [] for v in space.variants}
    for place in sorted(range(len(space.variants)), key=lambda k: space.variants[k].severity):
        relations[space.variants[place].relation.name].append(place)
    relations.pop(IDENTITY, None)
    if not relations:
        raise InputError("corrupted: expected a relation other than identity, got none")
    archives = _archives([*relations])
    labels = _labels(space)
    if not space.dataset.has_images:
        raise InputError(f"corrupted: dataset {space.dataset.name!r} has no images")
    shape = _plain(space.dataset.sample(0).require_image()).shape
    places = [*chain(*relations.values())]
    _check_room(Path(out), len(places) * len(labels) * int(np.prod(shape)))
    numbers = [k * len(space.variants) + place for place in places for k in range(len(labels))]
    follow_ups = follow_ups or partial(map, Sources(space, KEPT_BYTES).made)
    images = _images(space, follow_ups, numbers, shape, advance)
    written = {}
    with whole_folder(Path(out)) as folder:
        for name, severities in relations.items():
            path, repeated = folder / archives[name], np.tile(labels, (len(severities), 1))
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
    """Return the path of each relation's archive in the folder.

    Raise InputError if the paths of two relations differ at most by case.
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
    """Return the labels of all samples, (n, L); see ``export_corrupted``.

    Raise InputError for more than CLASSES classes, and for unknown truths.
    """
    dataset = as_loaded(space.dataset)
    truths = dataset.truth(np.arange(len(dataset))[:, None], np.arange(len(dataset.concepts)))
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
    """Return an image as archives hold it: a grey image has no third axis."""
    return image[:, :, 0] if image.shape[2] == 1 else image


class Sources:
    """Cache of a space's samples.

    Args:
        space: The space.
        free_bytes: Maximum memory of the images and masks that are kept.
    """

    def __init__(self, space: QuestionSpace, free_bytes: int) -> None:
        self.space, self._free_bytes = space, free_bytes
        self._kept: dict[int, Sample] = {}

    def __getitem__(self, index: int) -> Sample:
        if index in self._kept:
            return self._kept[index]
        sample = self.space.dataset.sample(index)
        image = sample.require_image()
        size = image.nbytes + len(sample.masks) * image[:, :, 0].size  # relations may load masks
        if size <= self._free_bytes:
            self._free_bytes -= size
            self._kept[index] = sample
        return sample

    def made(self, images: Sequence[int]) -> dict[int, tuple[Sample, FollowUp]]:
        """Return number -> source and follow-up for these images."""
        sources = {image: self[self.space.numbering.image_parts(image)[0]] for image in images}
        return {image: (s, self.space.made_of(s, image)) for image, s in sources.items()}


def _images(
    space: QuestionSpace,
    follow_ups: FollowUps,
    numbers: list[int],
    shape: tuple[int, ...],
    advance: Callable[[int], object],
) -> Iterator[Image]:
    """Yield the images of these numbers.

    Raise InputError for one of another shape, and for one whose relation changes a truth.
    """
    batch = min(MAX_BATCH, BATCH_BYTES // int(np.prod(shape)) or 1)
    batches = [numbers[k : k + batch] for k in range(0, len(numbers), batch)]
    for pairs in follow_ups(batches):
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
    """Return the header of an .npy file of uint8."""
    buffer = io.BytesIO()
    array = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, array)
    return buffer.getvalue()


def _check_room(out: Path, size: int) -> None:
    """Raise InputError if the disk of ``out`` has fewer than ``size`` free bytes."""
    existing = next(folder for folder in [out, *out.absolute().parents] if folder.exists())
    free = shutil.disk_usage(existing).free
    if size > free:
        raise InputError(
            f"corrupted: expected {size / 1e9:.1f} GB free for the archives at {str(out)!r}, got "
            f"{free / 1e9:.1f}; leave relations or images out"
        )
