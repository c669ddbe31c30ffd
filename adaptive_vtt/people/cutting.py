"""A page that asks its own server."""

import secrets
from urllib.parse import parse_qs, urlsplit

from ..errors import InputError
from ..results.view.pages import Reply
from ..types import Image
from ..utils.image_codec import jpeg

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


def picture(image: Image) -> Reply:
    """A picture as a reply."""
    return Reply(jpeg(image, 92), "image/jpeg", policy=POLICY)


def words(sentence: str, status: int = 200) -> Reply:
    """A sentence as a reply."""
    return Reply(sentence.encode(), "text/plain; charset=utf-8", status, POLICY)
