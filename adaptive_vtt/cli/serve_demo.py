"""``avtt serve-demo``: a chat model on loopback, to try an audit on."""

import os
import threading
from typing import Annotated

import typer

from ..demo.answers import Classifier
from ..demo.server import PRICE_INPUT, PRICE_OUTPUT, STATISTICS, DemoServer
from ..errors import InputError
from ..utils.web import text_of
from .options import opt


def serve_demo(
    port: Annotated[int, opt("Port on this machine; 0 takes a free one.")] = 8008,
    key_env: Annotated[
        str | None,
        opt("Environment variable with a key to ask for. Default: none is asked.", "NAME"),
    ] = None,
    latency: Annotated[float, opt("Seconds until an answer, in the median.")] = 0.2,
    error_rate: Annotated[float, opt("Share of the classifier's answers to turn round.")] = 0.0,
    fail: Annotated[
        float, opt("Share of requests that fail: 429, 503, or billed and cut off.")
    ] = 0.05,
    at_once: Annotated[int, opt("Calls at a time; more get 429. Default: any number.", "N")] = 0,
    seed: Annotated[int, opt("Same seed, same answers and failures.")] = 0,
) -> None:
    """Serve a model on this machine, to try an audit on.

    Example: avtt serve-demo --latency 0.5 --fail 0.2
    """
    server = DemoServer(
        Classifier(error_rate, seed),
        port=port,
        key=_key(key_env),
        latency=latency,
        spread=0.3,
        fail=fail,
        at_once=at_once,
        seed=seed,
    )
    with server:
        try:
            typer.echo(_introduction(server, key_env))
            threading.Event().wait()
        except KeyboardInterrupt:
            typer.echo("\n" + _bill(server))


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key:
        raise InputError(
            f"--key-env: expected the environment variable {variable} to hold the key, "
            "it is not set"
        )
    return key


def _introduction(server: DemoServer, key_env: str | None) -> str:
    values = {"url": server.url, "model": server.model.name, "key_env": key_env}
    prices = {"price_input": PRICE_INPUT, "price_output": PRICE_OUTPUT}
    return text_of(__package__, "serve_demo.txt", bill=STATISTICS, **values, **prices).rstrip()


def _bill(server: DemoServer) -> str:
    counts = server.statistics
    failed = f"{counts.limited} limited, {counts.broken} broken, {counts.cut} cut"
    return (
        f"{counts.requests} requests: {counts.answered} answered, {failed}, "
        f"{counts.rejected} rejected, {counts.lost} lost; billed {counts.prompt_tokens:,} prompt "
        f"and {counts.completion_tokens:,} completion tokens, {counts.cost:.4f} dollars"
    )
