"""``avtt serve-demo``: a model endpoint on loopback, to try an audit on."""

from pathlib import Path
from typing import Annotated

import typer


def serve_demo(
    captions: Annotated[
        bool,
        typer.Option(
            "--captions", help="Describe drawn scenes; --error-rate is then what is left out."
        ),
    ] = False,
    questions: Annotated[
        Path | None,
        typer.Option(
            help="Answer these multiple-choice questions (a TSV as of build-vqa) instead.",
            metavar="QUESTIONS.tsv",
        ),
    ] = None,
    like: Annotated[
        str,
        typer.Option(
            help="Whose protocol the printed spec is for, and whose quirks chat completions have: "
            "openai, anthropic, gemini, vllm, ollama or ollama-old.",
            metavar="PROVIDER",
        ),
    ] = "openai",
    port: Annotated[int, typer.Option(help="Port on this machine; 0 takes a free one.")] = 8008,
    key_env: Annotated[
        str | None,
        typer.Option(
            help="Environment variable with a key to ask for. Default: none is asked.",
            metavar="NAME",
        ),
    ] = None,
    latency: Annotated[float, typer.Option(help="Seconds until an answer, in the median.")] = 0.2,
    error_rate: Annotated[
        float, typer.Option(help="Share of wrong answers, in the mean over concepts.")
    ] = 0.1,
    worse: Annotated[
        float, typer.Option(help="Added to that share for the most perturbed images.")
    ] = 0.3,
    faults: Annotated[
        float, typer.Option(help="Share of failed calls: 429, 5xx, hangs, cut answers.")
    ] = 0.05,
    at_once: Annotated[
        int, typer.Option(help="Calls at a time; more get 429. Default: any number.", metavar="N")
    ] = 0,
    refusals: Annotated[float, typer.Option(help="Share of questions refused.")] = 0.01,
    rambling: Annotated[
        float,
        typer.Option(
            help="Share of answers that are buried in words; of --questions as many again name "
            "no option, for a judge to read."
        ),
    ] = 0.1,
    seed: Annotated[int, typer.Option(help="Same seed, same frames and answers.")] = 0,
    count: Annotated[int, typer.Option(help="How many synthetic frames it knows.")] = 200,
    size: Annotated[int, typer.Option(help="Side of the frames in pixels.")] = 256,
) -> None:
    """Serve a model on this machine that is asked like a paid one, to try an audit on.

    Example: avtt serve-demo --latency 0.5 --error-rate 0.2
    """
    from .demo_endpoint import serve

    serve(
        port=port,
        key_env=key_env,
        latency=latency,
        error_rate=error_rate,
        worse=worse,
        faults=faults,
        at_once=at_once,
        refusals=refusals,
        rambling=rambling,
        questions=questions,
        seed=seed,
        count=count,
        size=size,
        captions=captions,
        like=like,
    )
