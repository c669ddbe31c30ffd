"""The [model] section of a SPEC.toml."""

from typing import Any, Literal

from pydantic import Field

from ..types import CallMode
from .section import Section


class ModelSpec(Section):
    """The model under test."""

    kind: Literal[
        "python",
        "recorded",
        "simulated",
        "openai",
        "open-inference",
        "http",
        "onnx",
        "subprocess",
        "captioner",
    ] = Field(
        "python",
        description="python: a callable or torch module; recorded: a CSV of answers; simulated: "
        "one of the paper's simulated models; openai: a chat model that sees, at OpenAI or any "
        "server that speaks its protocol; open-inference: Triton, KServe, MLflow; http: any "
        "JSON; onnx: a file; subprocess: a program that answers JSON lines; captioner: one that "
        "describes drawn scenes and errs at rates that are set",
    )
    target: str | None = Field(
        None,
        description="python: 'file.py:name' or 'package.module:name', a callable from a list "
        "of H x W x C uint8 images to an array n x C of P(yes), or of masks n x C x H x W, "
        "or of n captions; simulated: unbiased, biased or negatively-biased",
    )
    answers: str | None = Field(
        None,
        description="recorded: CSV with sample, relation, severity, one column per concept; of "
        "captions a CSV or JSON with the column caption",
    )
    name: str | None = Field(None, description="what the report calls the model")
    model: str | None = Field(
        None, description="openai, open-inference: what the server calls the model"
    )
    url: str | None = Field(
        None,
        description="openai: address ending in /v1 (default: OpenAI); open-inference: the "
        "server's root; http: where to post; ${NAME} in it is read from the environment; of a "
        "query only api-version, version, format, output, lang, model and alt may be written out",
    )
    key: str | None = Field(
        None,
        description="openai: the environment variable that holds the key (default: "
        "OPENAI_API_KEY, where no url is given)",
    )
    in_flight: int | None = Field(None, description="calls on their way at a time (8)", ge=1)
    calls_per_minute: float | None = Field(None, description="at most so many calls", gt=0)
    tokens_per_minute: float | None = Field(None, description="at most so many tokens", gt=0)
    retries: int | None = Field(None, description="further attempts at a failed call (5)", ge=0)
    timeout: float | None = Field(None, description="seconds that an answer may take (60)", gt=0)
    max_reply_bytes: int | None = Field(
        None,
        description="openai, open-inference, http: a longer reply, decompressed, is a failed "
        "attempt; subprocess: a longer line is malformed (8e6)",
        ge=1,
    )
    price_per_call: float | None = Field(None, description="price of a call", ge=0)
    price_input: float | None = Field(None, description="price of price_tokens tokens sent", ge=0)
    price_output: float | None = Field(
        None, description="price of price_tokens tokens answered", ge=0
    )
    price_tokens: int | None = Field(None, description="tokens the prices are for (10^6)", ge=1)
    template: str | None = Field(
        None, description="openai: words of the prompt: zero-shot, few-shot or chain-of-thought"
    )
    per_call: CallMode | None = Field(
        None,
        description="openai (one), subprocess (all): questions that one call answers; python: "
        "what --dry-run, which imports no model, takes that to be (all)",
    )
    yes_from: Literal["auto", "logprobs", "structured", "words"] | None = Field(
        None, description="openai: where P(yes) comes from (auto: the first that works)"
    )
    detail: Literal["auto", "low", "high"] | None = Field(
        None, description="openai: how closely to look, where the server offers it"
    )
    max_tokens: int | None = Field(None, description="openai: longest reply (512)", ge=1)
    max_input_tokens: int | None = Field(
        None,
        description="openai: a prompt and its image are no more; for the cap on cost (4096)",
        ge=0,
    )
    options: dict[str, Any] | None = Field(
        None,
        description="openai: goes into the request (temperature = 0); ${NAME} in a text is read "
        "from the environment; extra_headers and extra_query as headers and the url's query",
    )
    image_format: Literal["png", "jpeg"] | None = Field(
        None, description="openai, http: how images are sent (png)"
    )
    image_quality: int | None = Field(None, description="openai, http: of JPEG (95)", ge=1, le=100)
    max_image_bytes: int | None = Field(None, description="openai, http: larger is refused (2e7)")
    request: dict[str, Any] | None = Field(
        None,
        description="http: the JSON to post; {image}, {concepts}, {concept}, {question}, "
        "{options} are filled in, and ${NAME} from the environment",
    )
    response: str | dict[str, str] | None = Field(
        None, description="http: where the answers stand, e.g. outputs.0.scores, or one per concept"
    )
    headers: dict[str, str] | None = Field(
        None,
        description="http, open-inference: name -> value, ${NAME} in it is read from the "
        "environment; only accept, accept-*, content-type, user-agent, cache-control, "
        "http-referer, x-title, anthropic-version and openai-beta may be written out",
    )
    input_tokens: str | None = Field(None, description="http: where the reply counts tokens sent")
    output_tokens: str | None = Field(None, description="http: where it counts those answered")
    most_input_tokens: int | None = Field(None, description="http: a call sends no more", ge=0)
    most_output_tokens: int | None = Field(None, description="http: a call answers no more", ge=0)
    version: str | None = Field(
        None,
        description="of the model (default: a hash of its file): a changed model is another one; "
        "open-inference: the version to ask for",
    )
    seed: int = Field(
        0, description="simulated, captioner, calls over a network: same seed, same model"
    )
    output: str | None = Field(None, description="open-inference, onnx: the output to read")
    concepts: list[str] | None = Field(
        None, description="open-inference, onnx: what the output's columns are (dataset's order)"
    )
    activation: Literal["none", "sigmoid", "softmax"] | None = Field(
        None, description="open-inference, onnx: what makes P(yes) of the output (none)"
    )
    mean: list[float] | None = Field(None, description="open-inference, onnx: of pixels in 0..1")
    std: list[float] | None = Field(None, description="open-inference, onnx: of pixels in 0..1")
    path: str | None = Field(None, description="onnx: the file")
    batch_size: int | None = Field(None, description="onnx: images at a time (64)", ge=1)
    providers: list[str] | None = Field(None, description="onnx: ONNX Runtime's, in order")
    command: str | list[str] | None = Field(None, description="subprocess: the program to start")
    omission: float | None = Field(
        None, description="captioner: share of things left out (0.1)", ge=0, le=1
    )
    misclassification: float | None = Field(
        None, description="captioner: share of things taken for others (0.05)", ge=0, le=1
    )
    fabrication: float | None = Field(
        None, description="captioner: share of captions that add a thing (0.03)", ge=0, le=1
    )
    sight: Literal["colours", "masks"] | None = Field(
        None, description="captioner: sees drawn scenes by colours (default), phantoms by masks"
    )
