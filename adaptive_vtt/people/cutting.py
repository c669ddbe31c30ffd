"""A page on which a box is drawn around an object, to cut it out of one's own picture.

Whatever is drawn is sent to this machine's own server, which answers with what GrabCut made of it;
only what is kept is written.
"""

import secrets
from base64 import b64encode
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from ..errors import InputError
from ..relations.medtest.grabbing import grabbed, saved, shown
from ..results.view.pages import Reply
from ..types import Image, Mask
from ..utils.image_codec import jpeg
from .sessions import page_of

POLICY = (
    "default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; script-src "
    "'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)
"""What the page may load: itself and what its own server answers."""


class OwnPage:
    """A page that asks its own server, to be served by ``Serving``.

    ``key`` is the first step of its address: another page that a browser shows does not know it,
    and so cannot write anything.
    """

    def __init__(self) -> None:
        self.key = secrets.token_urlsafe(12)

    def answer(self, address: str) -> Reply:
        """What is served at KEY/STEP; a sentence where that is nothing, or a mistake."""
        try:
            parts = urlsplit(address)
            query = parse_qs(parts.query, keep_blank_values=True, max_num_fields=12)
            match parts.path.split("/")[1:]:
                case [self.key, step] if (found := self.at(step, query)) is not None:
                    return found
        except (InputError, ValueError) as error:
            return words(str(error), 400)
        return words("nothing is served here", 404)

    def at(self, step: str, query: dict[str, list[str]]) -> Reply | None:
        """The page at ""; else what it asks for, None for what is not served."""
        raise TypeError(f"{type(self).__name__} defines no at")


class CutOuts(OwnPage):
    """The page about ``image``, named ``name``, whose objects go into ``folder``."""

    def __init__(self, image: Image, name: str, folder: Path) -> None:
        super().__init__()
        self.image, self.name, self.folder = image, name, folder

    def at(self, step: str, query: dict[str, list[str]]) -> Reply | None:
        """``show``, the picture with the object marked; ``keep``, where it was saved."""
        if step == "show":
            return picture(shown(self.image, self._object(query)))
        if step == "keep":
            path = saved(self.folder, self.name, self.image, self._object(query))
            return words(f"saved {path} and its mask")
        return None if step else Reply(self._page().encode(), policy=POLICY)

    def _object(self, query: dict[str, list[str]]) -> Mask:
        numbers = {name: [int(n) for n in said[0].split()] for name, said in query.items()}
        match numbers.get("box"), numbers.get("click"):
            case [x, y, width, height], None:
                return grabbed(self.image, (x, y, width, height))
            case None, [x, y]:
                return grabbed(self.image, None, (x, y))
            case [left, top, width, height], [x, y]:
                return grabbed(self.image, (left, top, width, height), (x, y))
        raise InputError("expected 4 numbers of a box, or 2 of a click")

    def _page(self) -> str:
        shown = "data:image/jpeg;base64," + b64encode(jpeg(self.image, 92)).decode()
        return page_of("cut_out.html", name=self.name, folder=self.folder, picture=shown)


def picture(image: Image) -> Reply:
    """A picture as a reply."""
    return Reply(jpeg(image, 92), "image/jpeg", policy=POLICY)


def words(sentence: str, status: int = 200) -> Reply:
    """A sentence as a reply."""
    return Reply(sentence.encode(), "text/plain; charset=utf-8", status, POLICY)
