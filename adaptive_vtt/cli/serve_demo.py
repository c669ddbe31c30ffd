"""``avtt serve-demo``: a model endpoint on loopback, to try an audit on."""

import json
import os
import threading
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Annotated, Any

import typer

from ..datasets import Dataset
from ..datasets.formats.endobench import from_endobench
from ..demo.phantom_frames import phantom
from ..demo.server import (
    DIALECTS,
    FAULTS,
    MODEL,
    STATISTICS,
    Behaviour,
    DemoModel,
    DemoServer,
    Dialect,
    FakeModel,
)
from ..demo.server.fake_models import FakeCaptioner, FakeJudge
from ..demo.template_captioner import TemplateCaptioner
from ..errors import InputError, check_known
from ..utils.web import text_of
from .options import opt

CAPTIONER = "demo-captioner"
"""What the served model is called that describes pictures."""


@dataclass(frozen=True)
class _Offer:
    """A fake model, what it is called, and what is to be said of it."""

    fake: FakeModel
    model: str
    images: str
    errors: str
    data: dict[str, Any]
    """What of demo.toml is its own."""


def serve_demo(
    captions: Annotated[
        bool,
        opt("Describe drawn scenes; --error-rate is then what is left out.", flags="--captions"),
    ] = False,
    questions: Annotated[
        Path | None,
        opt(
            "Answer these multiple-choice questions (a TSV as of build-vqa) instead.",
            "QUESTIONS.tsv",
        ),
    ] = None,
    like: Annotated[
        str,
        opt(
            "Whose protocol the printed spec is for, and what chat completions imitate: "
            "openai, anthropic, gemini, vllm, ollama or ollama-old.",
            "PROVIDER",
        ),
    ] = "openai",
    port: Annotated[int, opt("Port on this machine; 0 takes a free one.")] = 8008,
    key_env: Annotated[
        str | None,
        opt("Environment variable with a key to ask for. Default: none is asked.", "NAME"),
    ] = None,
    latency: Annotated[float, opt("Seconds until an answer, in the median.")] = 0.2,
    error_rate: Annotated[float, opt("Share of wrong answers, in the mean over concepts.")] = 0.1,
    worse: Annotated[float, opt("Added to that share for the most perturbed images.")] = 0.3,
    faults: Annotated[float, opt("Share of failed calls: 429, 5xx, hangs, cut answers.")] = 0.05,
    at_once: Annotated[int, opt("Calls at a time; more get 429. Default: any number.", "N")] = 0,
    refusals: Annotated[float, opt("Share of questions refused.")] = 0.01,
    rambling: Annotated[
        float,
        opt(
            "Share of answers that are buried in words; of --questions as many again name "
            "no option, for a judge to read."
        ),
    ] = 0.1,
    seed: Annotated[int, opt("Same seed, same frames and answers.")] = 0,
    count: Annotated[int, opt("How many synthetic frames it knows.")] = 200,
    size: Annotated[int, opt("Side of the frames in pixels.")] = 256,
) -> None:
    """Serve a model on this machine, asked as a paid one is, to try an audit on.

    Example: avtt serve-demo --latency 0.5 --error-rate 0.2
    """
    check_known("provider", like, ("anthropic", *DIALECTS), "--like")
    for name, share in (
        ("--error-rate", error_rate),
        ("--worse", worse),
        ("--faults", faults),
        ("--refusals", refusals),
        ("--rambling", rambling),
    ):
        if not 0 <= share <= 1:
            raise InputError(f"{name}: expected a share between 0 and 1, got {share}")
    for name, number, unit in (("--latency", latency, "seconds"), ("--at-once", at_once, "calls")):
        if not 0 <= number < inf:
            raise InputError(f"{name}: expected {unit}, 0 or more, got {number}")
    key = _key(key_env)
    behaviour = Behaviour(
        latency=latency,
        spread=0.3,
        at_once=at_once,
        **dict.fromkeys(FAULTS, faults / len(FAULTS)),
        seed=seed,
    )
    habits = {"worse": worse, "refusals": refusals, "rambling": rambling}
    if captions:  # what is asked does not matter to it, nor how large or perturbed images are
        offer = _captioner(error_rate, seed)
    elif questions is not None:
        offer = _student(questions, error_rate, seed, habits | {"vague": rambling})
    else:
        typer.echo(f"drawing {count} synthetic frames of {size} x {size} pixels ...")
        offer = _endoscopist(error_rate, seed, count, size, habits)
    dialect = DIALECTS.get(like, Dialect())
    with DemoServer(
        offer.fake, behaviour, port=port, model=offer.model, key=key, dialect=dialect
    ) as server:
        try:
            typer.echo(_introduction(server, offer, key_env, like))
            threading.Event().wait()
        except KeyboardInterrupt:
            typer.echo("\n" + _bill(server))


def _endoscopist(
    error_rate: float, seed: int, count: int, size: int, habits: dict[str, float]
) -> _Offer:
    frames = phantom(count, size=size, seed=seed)
    dataset = f"{count} synthetic ones, {size} x {size} pixels"
    fake, rates = _knowing(frames, error_rate, seed, habits)
    return _Offer(fake, MODEL, dataset, rates, {"count": count, "size": size, "seed": seed})


def _student(questions: Path, error_rate: float, seed: int, habits: dict[str, float]) -> _Offer:
    asked = from_endobench(questions)
    path = json.dumps(str(questions.resolve()), ensure_ascii=False)
    fake, rates = _knowing(asked, error_rate, seed, habits)
    dataset = f"those of {len(asked)} questions in {questions}"
    return _Offer(FakeJudge(fake), MODEL, dataset, rates, {"path": path})


def _knowing(
    dataset: Dataset, error_rate: float, seed: int, habits: dict[str, float]
) -> tuple[DemoModel, str]:
    """A model that knows what is true of these images and errs at set rates, and these in words."""
    errors = spread_errors(dataset.concepts, error_rate)
    rates = ",\n          ".join(f"{concept} {rate:.1%}" for concept, rate in errors.items())
    rates += f";\n          up to {habits['worse']:.0%} more where a frame is perturbed"
    return DemoModel(dataset, error=errors, seed=seed, **habits), rates


def _captioner(error_rate: float, seed: int) -> _Offer:
    captioner = TemplateCaptioner(
        omission=error_rate, misclassification=error_rate / 2, fabrication=error_rate / 3, seed=seed
    )
    fake = FakeCaptioner(captioner)
    told = ", ".join(f"{fault} {rate:.1%}" for fault, rate in captioner.rates.items())
    return _Offer(fake, CAPTIONER, "drawn scenes, whatever their count and seed", told, {})


def spread_errors(concepts: tuple[str, ...], rate: float) -> dict[str, float]:
    """Error rates from half to one and a half of ``rate``, so that there is something to find."""
    last = max(1, len(concepts) - 1)
    return {c: min(1.0, rate * (0.5 + k / last)) for k, c in enumerate(concepts)}


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


def _introduction(server: DemoServer, offer: _Offer, key_env: str | None, like: str) -> str:
    kind = "anthropic" if like == "anthropic" else "openai"
    chat = DIALECTS.get(like, Dialect()).root
    needed = f"the value of {key_env}" if key_env else "none is needed"
    if kind == "anthropic" and not key_env:
        needed += "; anything will do: export ANTHROPIC_API_KEY=demo"
    return text_of(
        __package__,
        "serve_demo.txt",
        server=server.url,
        chat=chat,
        kind=kind,
        url=server.url if kind == "anthropic" else server.url + chat,
        model=server.model,
        key_env=key_env,
        needed=needed,
        images=offer.images,
        errors=offer.errors,
        bill=STATISTICS,
        **offer.data,
    ).rstrip()


def _bill(server: DemoServer) -> str:
    counts = server.statistics
    failed = ", ".join(f"{getattr(counts, fault)} {fault}" for fault in FAULTS)
    return (
        f"{counts.requests} requests: {counts.answered} answered, {failed}, "
        f"{counts.rejected} rejected, {counts.lost} lost; billed {counts.prompt_tokens} prompt "
        f"and {counts.completion_tokens} completion tokens"
    )
