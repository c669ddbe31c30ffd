"""A server that lies, floods and falls silent, on loopback, for a chat model and for plain JSON.

An attack says what comes back for a paid request. It strikes two of three requests, chosen by
their bodies, so that a retry meets the same attack and an audit can still go on by the rest.
Sockets are written to by hand: no library would send most of this.
"""

import gzip
import hashlib
import json
import math
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any

USAGE = (300, 5)
"""Tokens that an honest reply counts: sent, and answered."""
COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
"""Fields of a reply's usage."""
BOMB = 256 * 2**20
"""Bytes that a compressed reply unpacks to, or an endless one sends at most."""
DRIP = 0.05
"""Seconds between the bytes of a reply that drips."""
Body = bytes | Callable[[], Iterator[bytes]]


@dataclass(frozen=True)
class Attack:
    """A response in place of an honest reply.

    ``billed``: it is a paid answer; ``above``: its count is above the declared bound of the audit,
    so that the first one may break the cap; ``hopeless``: the audit may end.
    """

    name: str
    reply: Callable[["Asked"], "Sent"]
    billed: bool = True
    above: bool = False
    hopeless: bool = False


@dataclass(frozen=True)
class Asked:
    """A request: whether it is a chat, the address of another origin, and its content."""

    chat: bool
    other: str
    path: str
    head: str


@dataclass(frozen=True)
class Sent:
    """Status, headers and body of a response; a length is added unless one is given."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: Body
    cut: bool = False


# -- honest replies, and small changes to them ------------------------------------------------


def honest(asked: Asked) -> dict[str, Any]:
    """Return a good reply, with P(yes) = .2 if it is asked for."""
    if not asked.chat:
        return {"scores": [0.2, 0.2], "in": USAGE[0], "out": USAGE[1]}
    usage = {"prompt_tokens": USAGE[0], "completion_tokens": USAGE[1], "total_tokens": sum(USAGE)}
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "No"},
        "finish_reason": "stop",
        "logprobs": None,
    }
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }


def said(content: Any, status: int = 200, **headers: str) -> Sent:
    """Return the JSON of any value that Python's json can write, also NaN and Infinity."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Sent(status, (("content-type", "application/json"), *named), body)


def altered(of_chat: Callable[[Any], object], plain: Callable[[Any], object]) -> Any:
    """Return a good reply with changes; a text that begins with = is inserted as bare JSON."""

    def reply(asked: Asked) -> Sent:
        found = honest(asked)
        (of_chat if asked.chat else plain)(found)
        return said(_bare(json.dumps(found)))

    return reply


def counting(sent: Any, answered: Any) -> Callable[[Asked], Sent]:
    """Return a good reply with these token counts."""
    counts = {"prompt_tokens": sent, "completion_tokens": answered}
    return altered(
        lambda r: r["usage"].update(counts), lambda r: r.update({"in": sent, "out": answered})
    )


def usage(value: Any) -> Callable[[Asked], Sent]:
    """Return a good reply whose whole usage is ``value``."""
    return altered(lambda r: r.update(usage=value), lambda r: r.update({"in": value, "out": value}))


def answering(content: Any) -> Callable[[Asked], Sent]:
    """Return a good reply with this content."""
    return altered(
        lambda r: r["choices"][0]["message"].update(content=content),
        lambda r: r.update(scores=content),
    )


def choices(value: Any) -> Callable[[Asked], Sent]:
    """Return a reply with another value in place of the choices, or of the scores."""
    return altered(lambda r: r.update(choices=value), lambda r: r.update(scores=value))


def raw(body: bytes, status: int = 200, **headers: str) -> Callable[[Asked], Sent]:
    return lambda asked: said(body, status, **headers)


def padded(asked: Asked, size: int) -> Iterator[bytes]:
    """Return a good reply that is ``size`` bytes long, in parts."""
    body = json.dumps(honest(asked)).encode()
    yield body[:-1] + b', "x": "'
    for _ in range(size >> 16):
        yield b"a" * 2**16
    yield b'"}'


def bomb(asked: Asked) -> Sent:
    """Return a small body that unpacks to a large one."""
    return said(_bomb(asked), content_encoding="gzip")


def endless(asked: Asked) -> Sent:
    headers = (("content-type", "application/json"), ("transfer-encoding", "chunked"))
    return Sent(200, headers, lambda: _chunks(padded(asked, BOMB)))


def dripping(asked: Asked) -> Sent:
    def drip() -> Iterator[bytes]:
        for _ in range(10_000):
            time.sleep(DRIP)
            yield b" "

    return Sent(200, (("content-length", "10000"),), drip)


def redirect(status: int) -> Callable[[Asked], Sent]:
    return lambda asked: Sent(status, (("location", asked.other + asked.path),), b"")


def closing(asked: Asked) -> Sent:
    return Sent(0, (), b"", cut=True)


def lengths(value: str) -> Callable[[Asked], Sent]:
    """Return a good reply with a wrong Content-Length."""
    return lambda asked: Sent(
        200,
        (("content-type", "application/json"), ("content-length", value)),
        json.dumps(honest(asked)).encode(),
    )


def _bare(text: str) -> bytes:
    """Return JSON text in which strings that begin with = are unquoted."""
    parts = text.split('"=')
    return "".join([parts[0], *(p.replace('"', "", 1) for p in parts[1:])]).encode()


_BOMBS: dict[bool, bytes] = {}


def _bomb(asked: Asked) -> bytes:
    if asked.chat not in _BOMBS:
        _BOMBS[asked.chat] = gzip.compress(b"".join(padded(asked, BOMB)), 1)
    return _BOMBS[asked.chat]


def _chunks(parts: Iterator[bytes]) -> Iterator[bytes]:
    for part in parts:
        yield b"%x\r\n%b\r\n" % (len(part), part)
    yield b"0\r\n\r\n"


DEEP = b"[" * 100_000 + b"]" * 100_000
ATTACKS: tuple[Attack, ...] = (
    *(Attack(f"count {name}", counting(sent, answered)) for name, sent, answered in (
        ("below zero", -1_000_000, 5), ("of answers below zero", 300, -1_000_000),
        ("NaN", math.nan, 5), ("infinite", math.inf, 5), ("minus infinite", -math.inf, 5),
        ("a fraction", 0.5, 5), ("in words", "many", 5), ("in digits", "300", 5),
        ("true", True, 5), ("null", None, None), ("a list", [300], 5), ("an object", {}, 5),
        ("minus, of 4,001 digits", "=-" + "9" * 4001, 5), ("1e400", "=1e400", 5),
    )),
    Attack("count of 4,001 digits", counting("=" + "9" * 4001, 5), above=True, hopeless=True),
    Attack("count of 10 ** 12", counting(10**12, 5), above=True, hopeless=True),
    Attack("count just above the bound", counting(401, 33), above=True),
    *(Attack(f"usage {name}", usage(value)) for name, value in (
        ("in words", "free"), ("a list", []), ("null", None), ("true", True))),
    *(Attack(f"usage whose {name}", usage(value), above=True) for name, value in (
        ("total is above its parts", dict(zip(COUNTS, (300, 5, 9000), strict=True))),
        ("thinking is counted apart", dict(zip(COUNTS, (300, 5, 305), strict=True))
            | {"completion_tokens_details": {"reasoning_tokens": 9000}}))),
    *(Attack(f"choices {name}", choices(value)) for name, value in (
        ("[null]", [None]), ("null", None), ("empty", []), ("an object", {"a": 1}),
        ("a number", 7), ("[[]]", [[]]), ("no message", [{"message": None}]),
        ("in words", "Yes"), ("of a megabyte", [0.2] * 200_000))),
    *(Attack(f"content {name}", answering(value)) for name, value in (
        ("a list", ["No"]), ("a number", 0.2), ("an object", {"No": 1}), ("true", True),
        ("NaN", math.nan), ("two NaN", [math.nan, math.nan]), ("below zero", [-5.0, -5.0]),
        ("infinite", [math.inf, 1.0]), ("lone surrogate", "\ud800"), ("nul", "\0" * 100),
        ("of a megabyte", "No " * 350_000))),
    *(Attack(f"body {name}", raw(body)) for name, body in (
        ("empty", b""), ("no JSON", b"<html>busy</html>"), ("null", b"null"), ("7", b"7"),
        ("a text", b'"No"'), ("[]", b"[]"), ("cut", b'{"choices": [{"mess'),
        ("no UTF-8", b'{"choices": "\xff\xfe"}'), ("100,000 deep", DEEP),
        ("BOM", b"\xef\xbb\xbf{}"),
        ("number of 4,001 digits", b'{"choices": [' + b"9" * 4001 + b"]}"), ("NaN", b"NaN"))),
    Attack("gzip bomb", bomb), Attack("endless body", endless), Attack("drip", dripping),
    Attack("gzip that is none", raw(b'{"a": 1}', content_encoding="gzip")),
    Attack("unknown encoding", raw(b'{"a": 1}', content_encoding="x-snow")),
    *(Attack(f"Content-Length {value[:6]}", lengths(value)) for value in (
        "3", "100000", "-1", "many", "9" * 5000)),
    Attack("header of a megabyte", raw(b"{}", x_much="a" * 2**20)),
    Attack("reset", closing),
    *(
        Attack(f"status {status}, and billed", raw(b"{}", status))
        for status in (408, 500, 503, 529)
    ),
    Attack("refused, and billed as counted", lambda asked: said(honest(asked), 429)),
    *(Attack(f"Retry-After {value[:32]}", raw(b"{}", 429, retry_after=value), billed=False)
      for value in ("Fri, 31 Dec 99999999999 23:59:59 GMT", "nan", "inf", "-5", "1e999", "9" * 5000,
                    "soon", "")),
    Attack("status 999", raw(b"{}", 999), billed=False),
    *(Attack(f"redirect {status}", redirect(status), billed=False, hopeless=True)
      for status in (301, 302, 303, 307, 308)),
)  # fmt: skip


# -- serving ----------------------------------------------------------------------------------


class Hostile(ThreadingTCPServer):
    """Server of one attack at a time, that counts requests, paid answers and redirects."""

    allow_reuse_address = daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.attack, self.other = ATTACKS[0], ""
        self.counts = dict.fromkeys(("asked", "billed", "attacked", "followed"), 0)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def count(self, **more: int) -> None:
        with self.lock:
            for name, number in more.items():
                self.counts[name] += number

    def handle_error(self, *_: Any) -> None:
        """Ignore clients that hang up."""


class Handler(StreamRequestHandler):
    """One connection, until one of the sides closes it."""

    server: Hostile

    def handle(self) -> None:
        with suppress(OSError, ValueError):
            while self._one():
                pass

    def _one(self) -> bool:
        head = b""
        while line := self.rfile.readline():
            if line == b"\r\n":
                break
            head += line
        if not head:
            return False
        text = head.decode("latin-1")
        fields = dict(h.split(": ", 1) for h in text.split("\r\n")[1:] if ": " in h)
        size = int({k.lower(): v for k, v in fields.items()}.get("content-length", 0))
        return self._answer(text, self.rfile.read(size))

    def _answer(self, head: str, body: bytes) -> bool:
        path = head.split(" ")[1]
        if path.startswith("/counts"):
            return self._tell(path)
        server = self.server
        server.count(asked=1)
        asked = Asked(path.endswith("completions"), server.other, path, head)
        # Every other call: answers overtaken by failures must not add up to the ten failures in a
        # row after which a server counts as down (Retries.give_up_after).
        if hashlib.sha256(body).digest()[0] % 2 == 0:
            server.count(billed=1)
            return self._send(said(honest(asked)))
        server.count(billed=int(server.attack.billed), attacked=1)
        return self._send(server.attack.reply(asked))

    def _tell(self, path: str) -> bool:
        """Send the counts; /counts/NUMBER selects the attack of that number."""
        server = self.server
        counts = dict(server.counts)
        if number := path.removeprefix("/counts").strip("/"):
            server.attack, server.counts = ATTACKS[int(number)], dict.fromkeys(counts, 0)
        return self._send(said(counts))

    def _send(self, sent: Sent) -> bool:
        if sent.cut:
            self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        names = {name for name, _ in sent.headers}
        lines = [f"HTTP/1.1 {sent.status} Thus", *(f"{n}: {v}" for n, v in sent.headers)]
        if isinstance(sent.body, bytes) and not names & {"content-length", "transfer-encoding"}:
            lines.append(f"content-length: {len(sent.body)}")
        self.wfile.write("\r\n".join([*lines, "connection: close", "", ""]).encode("latin-1"))
        for part in [sent.body] if isinstance(sent.body, bytes) else sent.body():
            self.wfile.write(part)
        return False


class Elsewhere(StreamRequestHandler):
    """Another origin; a client that comes here has followed a redirect."""

    def handle(self) -> None:
        server: Any = self.server
        if self.rfile.readline():
            server.origin.count(followed=1)
        self.wfile.write(b"HTTP/1.1 404 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")


def origins() -> tuple[Hostile, ThreadingTCPServer]:
    """Yield the hostile server, and another origin to which it redirects."""
    server, other = Hostile(), ThreadingTCPServer(("127.0.0.1", 0), Elsewhere)
    other.origin = server  # type: ignore[attr-defined]
    server.other = f"http://127.0.0.1:{other.server_address[1]}"
    return server, other


def serve(port: Any) -> None:
    """Serve both origins in their own process."""
    server, other = origins()
    threading.Thread(target=other.serve_forever, daemon=True).start()
    port.send(server.server_address[1])
    server.serve_forever(0.05)
