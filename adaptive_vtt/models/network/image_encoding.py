"""Images as they are sent to a model."""

from dataclasses import dataclass
from typing import Annotated, Literal

from ...errors import InputError
from ...types import Image
from ...utils.image_codec import jpeg, png
from ...utils.options import Option


@dataclass(frozen=True)
class Encoding:
    """PNG, which loses nothing, or JPEG of ``quality``, at most ``most_bytes`` long."""

    format: Annotated[
        Literal["png", "jpeg"], Option("how images are sent", name="image_format")
    ] = "png"
    quality: Annotated[int, Option("of JPEG", name="image_quality", ge=1, le=100)] = 95
    most_bytes: Annotated[int, Option("larger is refused", name="max_image_bytes")] = 20_000_000

    def __call__(self, image: Image, where: str) -> bytes:
        """The file's bytes; raises InputError naming ``where`` for one above ``most_bytes``."""
        data = png(image) if self.format == "png" else jpeg(image, self.quality)
        if len(data) > self.most_bytes:
            height, width = image.shape[:2]
            raise InputError(
                f"{where}: its image of {width} x {height} pixels takes {len(data):,} bytes as "
                f"{self.format}, above the limit of {self.most_bytes:,}"
            )
        return data

    @property
    def media_type(self) -> str:
        return f"image/{self.format}"
