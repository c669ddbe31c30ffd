"""The pages over HTTP, to one person on this machine."""

import asyncio
from pathlib import Path

from ...errors import one_line
from ...utils.http_server import Call, HttpServer, Rejected, Response
from .pages import Site, trouble
from .watching import Watch

PATIENCE = 15.0
"""Seconds from a connection, or its last answer, until the head of a request must be there."""


class Serving(HttpServer):
    """Server of the pages of ``site`` (``HttpServer``); only GET is answered."""

    def __init__(self, site: Site, port: int = 0, patience: float = PATIENCE) -> None:
        super().__init__(port, most_bytes=0, patience=patience, idle=patience)
        self.site = site

    @property
    def url(self) -> str:
        """The address of the first page."""
        return f"{super().url}/"

    def error(self, rejected: Rejected) -> Response:
        """Return a page with the reason."""
        sentence = f"{rejected.message[0].upper()}{rejected.message[1:]}."
        return trouble(sentence, rejected.status)

    async def serve(self, call: Call) -> bool:
        """Answer in a thread, as reading runs takes its time."""
        request = call.request
        if request.method != "GET":
            answer = self.error(Rejected(501, f"expected GET, got {request.method[:20]}"))
        else:
            try:
                answer = await asyncio.to_thread(self.site.answer, request.address)
            except Exception as error:  # a mistake of ours must not look like a lost connection
                mistake = f"a mistake of this server: {type(error).__name__}: {one_line(error)}"
                answer = self.error(Rejected(500, mistake))
        await call.send(answer)
        return True


class View(Serving):
    """Server of the pages about ``root``, a run folder or a folder of runs.

    Raises:
        InputError: There is no such folder, or the port is taken.
    """

    def __init__(self, root: Path, port: int = 0) -> None:
        self._watch = Watch(root)
        super().__init__(Site(self._watch), port)

    def close(self) -> None:
        super().close()
        self._watch.close()
