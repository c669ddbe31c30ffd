"""The visible field from files: what a dataset knows of its black frame."""

from functools import cached_property
from pathlib import Path

from ...errors import InputError
from ...types import Mask, Sample
from ...utils.files import hash_files
from ...utils.image_files import read_image
from .cutouts import ENDINGS


class FieldFiles:
    """Masks of the visible field: bright (above 127) where tissue is to be seen.

    ``path``: one picture for all images, as one device has one frame, or a folder with a picture
    per sample, named by the sample's id or its file name without the ending. Raises InputError
    for a path with no picture, and, when it is asked, for a sample without one.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        listed = sorted(self._path.iterdir()) if self._path.is_dir() else [self._path]
        self._files = {p.stem: p for p in listed if p.suffix.lower() in ENDINGS and p.is_file()}
        if not self._files:
            raise InputError(
                f"visible field {str(path)!r}: expected a mask or a folder of masks, found no "
                "picture file"
            )

    def __call__(self, sample: Sample) -> Mask:
        """H x W, False on the black frame."""
        if not self._path.is_dir():
            return self._of_all
        file = self._files.get(sample.id) or self._files.get(Path(sample.id).stem)
        if file is None:
            raise InputError(f"visible field {str(self._path)!r}: no mask for {sample.id!r}")
        return _read(file)

    @cached_property
    def _of_all(self) -> Mask:
        """The one field of all images, not to be written to."""
        mask = _read(self._path)
        mask.flags.writeable = False
        return mask

    @cached_property
    def describe(self) -> str:
        """A hash of all files: another field makes other follow-ups."""
        return f"field {hash_files(self._files.values())}"


def _read(file: Path) -> Mask:
    mask: Mask = read_image(file, f"visible field {file.name!r}").max(axis=2) > 127
    return mask
