"""The kind of endpoint people write themselves: an image in, scores out."""

from ...errors import InputError
from .brain import Brain
from .http import Rejected, Request, Response, Usage
from .image_decoding import MAX_PIXELS, decoded
from .routes import Route


class Plain:
    """POST /predict: {"image": base64 of a file, "concepts": [...]} -> {"scores": [...]}.

    Scores are P(yes), one per concept asked about (all of them where none are named).
    """

    def __init__(self, brain: Brain, most_pixels: int = MAX_PIXELS) -> None:
        self._brain, self._most_pixels = brain, most_pixels
        self.routes = (Route("POST", r"/predict", self._predict, paid=True),)

    def error(self, rejected: Rejected) -> Response:
        """A body with the message, as such endpoints mostly have it."""
        return Response(rejected.status, {"error": rejected.message})

    def _predict(self, request: Request) -> Response:
        asked = request.json()
        source, concepts = asked.get("image"), asked.get("concepts", [*self._brain.concepts])
        if not isinstance(source, str):
            raise Rejected(400, "expected image, a file in base64")
        if not isinstance(concepts, list) or not all(isinstance(c, str) for c in concepts):
            raise Rejected(400, "expected concepts, a list of names")
        image = decoded(source, self._most_pixels)
        try:
            scores = self._brain.probabilities(image, concepts)
        except InputError as error:
            raise Rejected(400, str(error)) from None
        return Response(200, {"scores": scores}, usage=Usage())
