"""``avtt serve-demo``: a chat model on loopback, to try an audit on."""

import os
import threading
from importlib.util import find_spec

import typer

from ..demo.answers import Classifier
from ..demo.server import PRICE_INPUT, PRICE_OUTPUT, STATISTICS, DemoServer
from ..errors import InputError
from ..utils.importing import pip_install
from .printing import filled


def serve_demo(
    *,
    port: int = 8008,
    key_env: str | None = None,
    latency: float = 0.2,
    error_rate: float = 0.0,
    fail: float = 0.05,
    at_once: int = 0,
    seed: int = 0,
) -> None:
    """Serve a model on this machine, to try an audit on.

    Example: avtt serve-demo --latency 0.5 --fail 0.2

    Args:
        port: Port on this machine; 0 takes a free one.
        key_env (NAME): Environment variable with the API key to require. Default: none.
        latency (SECONDS): Median time until an answer.
        error_rate (SHARE): Share of the classifier's answers to reverse.
        fail (SHARE): Share of requests that fail: 429, 503, or billed and cut off.
        at_once (N): Most calls at a time; more get 429. 0 allows any number.
        seed: Same seed, same answers and failures.
    """
    key = None if key_env is None else os.environ.get(key_env)
    if key_env is not None and not key:
        raise InputError(
            f"--key-env: expected the environment variable {key_env} to hold the key, it is not set"
        )
    model, speed = Classifier(error_rate, seed), {"latency": latency, "spread": 0.3, "fail": fail}
    with DemoServer(model, port=port, key=key, at_once=at_once, seed=seed, **speed) as server:
        try:
            values: dict[str, object] = {"url": server.url, "model": model.name, "key_env": key_env}
            missing = "" if find_spec("openai") else pip_install("openai")
            values |= {"missing": missing, "price_input": PRICE_INPUT, "price_output": PRICE_OUTPUT}
            typer.echo(filled("serve_demo", bill=STATISTICS, **values))
            threading.Event().wait()
        except KeyboardInterrupt:
            counts = server.statistics
            failed = f"{counts.limited} limited, {counts.broken} broken, {counts.cut} cut"
            typer.echo(
                f"\n{counts.requests} requests: {counts.answered} answered, {failed}, "
                f"{counts.rejected} rejected, {counts.lost} lost; billed {counts.prompt_tokens:,} "
                f"prompt and {counts.completion_tokens:,} completion tokens, {counts.cost:.4f} "
                "dollars"
            )
