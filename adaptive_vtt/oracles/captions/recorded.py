"""Captions by which follow-ups are chosen: recorded before an audit, or the model's own.

REIC (TSE 2024, sections IV-B to IV-D) captions an image, locates the objects that the caption
names, and chooses follow-ups that hide or keep them. Certificates need all of this to be fixed
before a draw. Recorded captions are fixed; the model's own captions are asked for once, before any
follow-up of their image is made (docs/papers.md).
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...datasets.base import Dataset
from ...errors import InputError, check_known, unexpected
from ...models.local.recorded import read_captions, require_columns
from ...types import IDENTITY, Box, Received
from ...utils.other_code import fingerprint_of
from . import Reader, Same, language
from .localising import HIDDEN, VERSIONS, by_detection, completed

PLAIN = -1
"""The number of the unchanged image among its versions."""


class RecordedNaming:
    """Objects that recorded captions name, with their boxes; see ``relations.reic.Naming``.

    Args:
        captions: Id of a sample -> caption, or ``Received`` if versions with a box hidden were
            captioned, too (by box * 3 + version), which locate objects without a box of their name.
        reader: Reader of the objects that a caption names. Default: ``oracles.captions.language``.
        same: Function that decides whether two names mean the same. Default: as for ``reader``.
    """

    own = False

    def __init__(
        self,
        captions: Mapping[str, str | Received],
        reader: Reader | None = None,
        same: Same | None = None,
    ) -> None:
        self.captions = {
            sample: caption if isinstance(caption, Received) else Received(caption, {})
            for sample, caption in captions.items()
        }
        self.reader = reader or language.reader()
        self.same = same or language.same()

    @property
    def fingerprint(self) -> str:
        """A hash of all captions, and the names of reader and matcher."""
        rows = [(k, c.answer, sorted(c.versions.items())) for k, c in sorted(self.captions.items())]
        digest = hashlib.blake2b(repr(rows).encode(), digest_size=12).hexdigest()
        return f"captions {digest} ({self._words})"

    @property
    def _words(self) -> str:
        return f"{fingerprint_of(self.reader)}; {fingerprint_of(self.same)}"

    def objects(
        self, sample_id: str, boxes: Sequence[Box], received: Received | None = None
    ) -> tuple[tuple[Box, ...], ...]:
        """Return the boxes of each located object that the caption of a sample names.

        They are the boxes of its name, else those without which captions do not name it.

        Raises:
            InputError: The sample has no caption, or one with a box hidden that it does not have.
        """
        received = self._received(sample_id, received)
        hidden = {place: self._names(answer) for place, answer in received.versions.items()}
        if hidden and (box := 1 + max(hidden) // len(VERSIONS)) > len(boxes):
            expected = f"captions with one of its {len(boxes)} boxes hidden"
            remedy = "record them with these boxes"
            raise unexpected(f"reic: sample {sample_id!r}", expected, f"one with box {box}", remedy)
        detected = by_detection(self._names(received.answer), boxes, self.same)
        located = completed(detected, boxes, hidden, self.same)
        return tuple(object_.boxes for object_ in located if object_.boxes)

    def _received(self, sample_id: str, received: Received | None) -> Received:
        if sample_id not in self.captions:
            raise unexpected("reic", f"a recorded caption of {sample_id!r}", "none")
        return self.captions[sample_id]

    def check(self, dataset: Dataset) -> None:
        """Raise InputError, before an audit begins, for a caption of a hidden box that its sample
        does not have."""
        for index in range(len(dataset)):
            name = dataset.sample_id(index)
            if name in self.captions and self.captions[name].versions:
                self.objects(name, dataset.sample(index).boxes)

    def _names(self, answer: object) -> tuple[str, ...]:
        return tuple(self.reader.objects(answer)) if isinstance(answer, str) else ()


class OwnNaming(RecordedNaming):
    """Objects that the audited model's own captions of a sample and its versions name."""

    own = True

    def __init__(self, reader: Reader | None = None, same: Same | None = None) -> None:
        super().__init__({}, reader, same)

    @property
    def fingerprint(self) -> str:
        """The names of reader and matcher."""
        return f"own captions ({self._words})"

    def _received(self, sample_id: str, received: Received | None) -> Received:
        if received is None:
            expected = "the model's own caption (captions = 'own')"
            remedy = "use a recorded caption, or a run that asked"
            raise unexpected(f"reic: sample {sample_id!r}", expected, "none", remedy)
        return received


def source_captions(path: Path | str, samples: Sequence[str]) -> dict[str, Received]:
    """Return recorded captions by sample.

    Args:
        path: A CSV or JSON with the columns sample and caption. It may have relation and severity,
            as the table of ``export --questions`` has. Then rows of relation identity are used, and
            those of "hidden/blur", "hidden/black" and "hidden/inpaint" with a caption, whose
            severity is the number of the hidden box.
        samples: Ids of all samples.

    Raises:
        InputError: A column is missing; a sample is unknown, or has no caption or two; or a
            relation or severity is invalid.
    """
    file = Path(path)
    table = read_captions(file)
    require_columns(table, ("sample", "caption"), str(file))
    known = set(samples)
    captions: dict[str, dict[int, str]] = {sample: {} for sample in samples}
    for number, row in enumerate(table.to_dict("records"), start=1):
        where, relation = f"{file}: row {number}", row.get("relation")
        # in JSON, rows about a source image may omit the relation
        relation = relation if isinstance(relation, str) and relation else IDENTITY
        if relation != IDENTITY and not relation.startswith(HIDDEN):
            continue
        sample, caption = row["sample"], row["caption"]
        if sample is None or sample != sample:  # NaN, which a row of JSON without one has
            raise unexpected(f"{where}, sample", "the name of a sample", "none")
        check_known("sample", str(sample), known, where)
        place = _place(relation, row.get("severity"), where)
        if place in captions[str(sample)]:
            raise InputError(f"{where}, sample: {str(sample)!r} stands twice; leave one row")
        if isinstance(caption, str) and caption.strip():
            captions[str(sample)][place] = caption
        elif relation == IDENTITY:
            expected = f"a caption of sample {str(sample)!r}"
            remedy = "the captioner's words about that image go there"
            raise unexpected(f"{where}, caption", expected, "none", remedy)
    if missing := [sample for sample in samples if PLAIN not in captions[sample]]:
        rows = f" (in rows of relation {IDENTITY!r})" if "relation" in table else ""
        remedy = f"{len(missing)} of {len(samples)} samples have none{rows}"
        raise unexpected(str(file), f"a row with a caption of {missing[0]!r}", "none", remedy)
    return {sample: Received(places.pop(PLAIN), places) for sample, places in captions.items()}


def _place(relation: str, severity: object, where: str) -> int:
    """Return the number of a version of a sample: box * 3 + version, PLAIN for the image."""
    if relation == IDENTITY:
        return PLAIN
    version = relation.removeprefix(HIDDEN)
    if version not in VERSIONS:
        expected = f"{HIDDEN} and one of {', '.join(VERSIONS)}"
        raise unexpected(f"{where}, relation", expected, repr(relation))
    if (box := re.fullmatch(r"0*([1-9]\d{0,8})(?:\.0*)?", str(severity))) is None:
        raise unexpected(f"{where}, severity", "the number of the hidden box", repr(severity))
    return (int(box[1]) - 1) * len(VERSIONS) + VERSIONS.index(version)
