"""Secrets in all fields of a spec that may have one, with a server that echoes all it receives.

Afterwards every file of the run folder and all output are searched for each secret: as it is,
percent-encoded, and in base64.
"""

import base64
import json
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from adaptive_vtt.experiments.engine.killed_audits import served
from adaptive_vtt.experiments.program import Row

from . import resilience_audits as audits
from .resilience_audits import Kind
from .resilience_kills import row

SECRET = "sk-Pl4nted/9f+Zq=Wx7_{}"
"""Has characters that URLs and base64 write otherwise; {} becomes the number of the place."""
STATUSES = (200, 400, 401, 429, 500)
"""Under which the echo comes back."""
OPENAI = 'kind = "openai"\nurl = "{url}/v1"\nmodel = "m"\nyes_from = "words"\n'
HTTP = 'kind = "http"\nurl = "{url}/predict"\nrequest = {{image = "{{image_base64}}"}}\n'
SCORES = 'response = "scores"\n'
OPTIONS = 'options = {{extra_HOW = {{x-own = "{secret}"}}}}\n'
HEADER = 'headers = {{x-own = "{secret}"}}\n'
INFERENCE = 'kind = "open-inference"\nurl = "{url}"\nmodel = "m"\n'


class Place(NamedTuple):
    """A [model] section with {secret} or {quoted} in it, or with the variable PLANTED."""

    name: str
    model: str


PLACES = (
    Place("openai key", OPENAI + 'key = "PLANTED"\n'),
    Place("openai url", OPENAI.replace("/v1", "/v1?key={quoted}")),
    Place("openai extra_headers", OPENAI + OPTIONS.replace("HOW", "headers")),
    Place("openai extra_query", OPENAI + OPTIONS.replace("HOW", "query")),
    Place("openai extra_body", OPENAI + OPTIONS.replace("HOW", "body")),
    Place(
        "openai extra_headers, variable",
        OPENAI + OPTIONS.replace("HOW", "headers").replace("{secret}", "$PLANTED"),
    ),
    *(
        Place(
            f"openai extra_{how}, variable",
            OPENAI + OPTIONS.replace("HOW", how).replace("{secret}", "${{PLANTED}}"),
        )
        for how in ("query", "body")
    ),
    Place("http header, variable", HTTP + SCORES + HEADER.replace("{secret}", "Bearer $PLANTED")),
    Place("http header", HTTP + SCORES + HEADER),
    Place("http url", HTTP.replace("/predict", "/predict?key={quoted}") + SCORES),
    Place("http url, variable", HTTP.replace("/predict", "/predict?key=${{PLANTED}}") + SCORES),
    Place("http url, fragment", HTTP.replace("/predict", "/predict#{quoted}") + SCORES),
    Place("http request", HTTP.replace("= {{", '= {{api_key = "{secret}", ') + SCORES),
    Place(
        "http request, variable", HTTP.replace("= {{", '= {{api_key = "${{PLANTED}}", ') + SCORES
    ),
    Place("open-inference header", INFERENCE + HEADER),
    Place("open-inference header, variable", INFERENCE + HEADER.replace("{secret}", "$PLANTED")),
    Place("open-inference url", INFERENCE.replace("{url}", "{url}/?key={quoted}")),
)


def secrets(folder: Path, every: int) -> list[Row]:
    """Try every ``every``-th of all places and statuses."""
    tried = [(place, status) for place in PLACES for status in STATUSES][::every]
    with served(serve) as url:
        lost = [
            f"{place.name} ({status}): {', '.join(where)}"
            for number, (place, status) in enumerate(tried)
            if (where := leaks(folder, url, place, status, number))
        ]
    return [row("secrets: in no file and no word printed", len(tried), len(lost), "; ".join(lost))]


def leaks(folder: Path, url: str, place: Place, status: int, number: int) -> list[str]:
    """Return the files with the secret of one audit, as "file: form"."""
    secret = SECRET.format(number)
    model = (
        place.model.format(url=f"{url}/{status}", secret=secret, quoted=quote(secret, safe=""))
        + "retries = 0\ntimeout = 3.0\n"
    )
    run = folder / f"secret-{number}"
    spec = audits.write_folder(folder / "secrets", Kind("secret", model), budget=3)
    said = [
        audits.ran(command, PLANTED=secret).said
        for command in (
            ["audit", str(spec), "--out", str(run)],
            ["resume", str(run)],
            ["report", str(run)],
            ["verify", str(run)],
        )
    ]
    texts = {"printed": "".join(said).encode()}
    texts |= {path.name: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    return [f"{name}, {how}" for name, data in texts.items() for how in written(secret, data)]


def written(secret: str, data: bytes) -> Iterator[str]:
    """Return the forms of a secret in ``data``, apart from line breaks of a terminal."""
    bare = b"".join(data.split())
    for how, form in forms(secret).items():
        if form.encode() in data or form.encode() in bare:
            yield how


def forms(secret: str) -> dict[str, str]:
    """Return a secret as it is, and in the forms of echoes."""
    return {
        "plain": secret,
        "percent-encoded": quote(secret, safe=""),
        "base64": base64.b64encode(secret.encode()).decode().rstrip("="),
        "base64 of a header": base64.b64encode(f"Bearer {secret}".encode()).decode().rstrip("="),
        "as JSON": json.dumps(secret).strip('"').replace("/", "\\/"),
    }


class Echo(BaseHTTPRequestHandler):
    """Server that echoes all it receives, in every form; the path begins with the status."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        received = [unquote(self.path.partition("?")[2].partition("=")[2])]
        received += [str(self.headers.get(name, "")) for name in ("authorization", "x-own")]
        received += [_field(body, "api_key"), _field(body, "x-own")]
        bare = [word.removeprefix("Bearer ") for word in received if word]
        words = " ".join(form for word in bare for form in forms(word).values())
        self._say(int(self.path.split("/")[1]), words)

    do_GET = do_POST

    def _say(self, status: int, words: str) -> None:
        message = {"message": {"role": "assistant", "content": words}, "index": 0}
        said = (
            {"error": {"message": words, "code": words}}
            if status != 200
            else {
                "id": words,
                "object": "chat.completion",
                "created": 0,
                "model": words,
                "choices": [{**message, "finish_reason": "stop"}],
                "scores": [words, words],
                "name": words,
                "platform": words,
                "inputs": [{"name": words}],
                "outputs": [words],
            }
        )
        data = json.dumps(said).encode()
        self.send_response(status, words[:60])
        self.send_header("content-length", str(len(data)))
        self.send_header("retry-after", "0")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def _field(body: bytes, name: str) -> str:
    try:
        return str(json.loads(body).get(name, ""))
    except (ValueError, AttributeError):
        return ""


def serve(port: Any) -> None:
    """Serve the echo in its own process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port.send(server.server_port)
    signal.pause()
