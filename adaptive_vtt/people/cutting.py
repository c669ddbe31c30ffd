"""A page on which a box is drawn around an object, to cut it out of one's own picture.

Whatever is drawn is sent to this machine's own server, which answers with what GrabCut made of it;
only what is kept is written.
"""

import secrets
from base64 import b64encode
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from markupsafe import Markup

from ..errors import InputError
from ..relations.medtest.grabbing import grabbed, saved, shown
from ..results.view.pages import Reply
from ..types import Image, Mask
from ..utils.image_codec import jpeg
from ..utils.web import templates_of
from .sessions import HERE, STYLE

POLICY = (
    "default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; script-src "
    "'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)
"""What the page may load: itself and what its own server answers."""


class CutOuts:
    """The page about ``image``, named ``name``, whose objects go into ``folder``.

    ``key`` is the first step of its address: another page that a browser shows does not know it,
    and so cannot write anything.
    """

    def __init__(self, image: Image, name: str, folder: Path) -> None:
        self.image, self.name, self.folder = image, name, folder
        self.key = secrets.token_urlsafe(12)

    def answer(self, address: str) -> Reply:
        """The page; ``show``, the picture with the object marked; ``keep``, where it was saved."""
        try:
            parts = urlsplit(address)
            query = parse_qs(parts.query, max_num_fields=2)
            steps = parts.path.split("/")[1:]
            if steps == [self.key, ""]:
                return Reply(self._page().encode(), policy=POLICY)
            if steps == [self.key, "show"]:
                marked = shown(self.image, self._object(query))
                return Reply(jpeg(marked, 92), "image/jpeg", policy=POLICY)
            if steps == [self.key, "keep"]:
                path = saved(self.folder, self.name, self.image, self._object(query))
                return words(f"saved {path} and its mask")
        except (InputError, ValueError) as error:
            return words(str(error), 400)
        return words("nothing is served here", 404)

    def _object(self, query: dict[str, list[str]]) -> Mask:
        numbers = {name: [int(n) for n in said[0].split()] for name, said in query.items()}
        box, click = numbers.get("box"), numbers.get("click")
        if len(box or [0] * 4) != 4 or len(click or [0] * 2) != 2:
            raise InputError("expected 4 numbers of a box, or 2 of a click")
        return grabbed(
            self.image,
            None if box is None else (box[0], box[1], box[2], box[3]),
            None if click is None else (click[0], click[1]),
        )

    def _page(self) -> str:
        return (
            templates_of(HERE)
            .get_template("cut_out.html")
            .render(
                style=Markup(STYLE.read_text(encoding="utf-8")),
                name=self.name,
                folder=self.folder,
                picture="data:image/jpeg;base64," + b64encode(jpeg(self.image, 92)).decode(),
            )
        )


def words(sentence: str, status: int = 200) -> Reply:
    """A sentence as a reply."""
    return Reply(sentence.encode(), "text/plain; charset=utf-8", status, POLICY)
