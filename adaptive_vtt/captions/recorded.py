"""Captions recorded before an audit, as what its follow-ups are chosen by.

REIC (TSE 2024, sections IV-B to IV-D) captions an image, locates what the caption names and then
chooses follow-ups that hide or keep it. With captions recorded beforehand all of that is fixed
before the first draw, as certificates want it (docs/papers.md).
"""

import hashlib
from collections.abc import Mapping, Sequence

from ..errors import InputError
from ..types import Box
from ..utils.parts import describe_part
from . import language
from .base import Reader, Same
from .localising import by_detection


class RecordedNaming:
    """The objects that captions name, in the boxes of these names; see ``relations.reic.Naming``.

    ``captions``: by the sample's id. ``reader`` and ``same``: as oracles take them (default:
    ``captions.language``). No box is hidden to find an object: that takes answers.
    """

    def __init__(
        self, captions: Mapping[str, str], reader: Reader | None = None, same: Same | None = None
    ) -> None:
        self.captions = dict(captions)
        self.reader = reader or language.reader()
        self.same = same or language.same()

    @property
    def describe(self) -> str:
        """A hash of all captions, and how they are read."""
        said = repr(sorted(self.captions.items())).encode()
        words = f"{describe_part(self.reader)}; {describe_part(self.same)}"
        return f"captions {hashlib.blake2b(said, digest_size=12).hexdigest()} ({words})"

    def objects(self, sample_id: str, boxes: Sequence[Box]) -> tuple[tuple[Box, ...], ...]:
        """The boxes of each object that the caption of a sample names and a box bears the name of.

        Raises InputError for a sample without a caption.
        """
        if sample_id not in self.captions:
            raise InputError(f"reic: expected a recorded caption of {sample_id!r}, got none")
        names = self.reader.objects(self.captions[sample_id])
        return tuple(one.boxes for one in by_detection(names, boxes, self.same) if one.boxes)
