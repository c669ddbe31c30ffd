"""The [model] sections of models that are asked over a network, and what they build."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from ..datasets import Dataset
from ..models import REGISTRY, Encoding, Limits, ModelUnderTest, Prices, Retries
from ..models.network.http_json import name_of_url
from ..models.network.prompt_templates import template
from .environment import Filled
from .model_section import ModelSection, Tensors, renamed
from .section import Section

_RETRIES = {"retries": "times", "timeout": "timeout"}
_PRICES = {
    "price_per_call": "per_call",
    "price_input": "input",
    "price_output": "output",
    "price_tokens": "tokens",
}
_ENCODING = {
    "image_format": "format",
    "image_quality": "quality",
    "max_image_bytes": "most_bytes",
}
_LIMITS = {name: name for name in ("in_flight", "calls_per_minute", "tokens_per_minute")}
_HEADERS = (
    "name -> value, ${NAME} in it is read from the environment; only accept, accept-*, "
    "content-type, user-agent, cache-control, http-referer, x-title, anthropic-version and "
    "openai-beta may be written out"
)
_QUERY = (
    "${NAME} in it is read from the environment; of a query only api-version, version, format, "
    "output, lang, model and alt may be written out"
)


_AtATime = Annotated[int, Field(ge=1)]
_Bounds = tuple[_AtATime, _AtATime]


class _Paid(ModelSection):
    costs_money: ClassVar[bool] = True
    retries: int | None = Field(None, description="further attempts at a failed call (5)", ge=0)
    timeout: float | None = Field(None, description="seconds that an answer may take (60)", gt=0)
    failed_attempts: Literal["likely", "all", "none"] | None = Field(
        None,
        description="which failed attempts the server bills where it does not say, each booked at "
        "the most it can cost (likely: timeouts, 5xx, broken replies; no refusals)",
    )
    price_per_call: float | None = Field(None, description="price of a call", ge=0)
    price_input: float | None = Field(None, description="price of price_tokens tokens sent", ge=0)
    price_output: float | None = Field(
        None, description="price of price_tokens tokens answered", ge=0
    )
    price_tokens: int | None = Field(None, description="tokens the prices are for (10^6)", ge=1)

    def build(self, base: Path, dataset: Dataset, *, captions: bool) -> ModelUnderTest:
        with Filled(self.own()) as (given, keys):
            _gather(given, "limits", Limits, _LIMITS)
            _gather(given, "retries", Retries, _RETRIES)
            _gather(given, "prices", Prices, _PRICES)
            _gather(given, "encoding", Encoding, _ENCODING)
            if "template" in given:
                given["template"] = template(given["template"], base)
            options = {"seed": self.seed, **self.arguments(given), **self.named()}
            return REGISTRY.get(self.kind)(**options, **({"keys": keys} if keys else {}))

    def arguments(self, given: dict[str, Any]) -> dict[str, Any]:
        """The kind's own fields as arguments of its class."""
        return given


class _Read(Section):
    max_reply_bytes: int | None = Field(
        None, description="a longer reply, decompressed, is a failed attempt (8e6)", ge=1
    )


class _Called(_Paid):
    in_flight: _AtATime | _Bounds | Literal["auto"] | None = Field(
        None,
        description="calls on their way at a time (8); 'auto' lets the server's replies decide, "
        "between 1 and 64, [least, most] between these",
    )
    calls_per_minute: float | None = Field(None, description="at most so many calls", gt=0)
    tokens_per_minute: float | None = Field(None, description="at most so many tokens", gt=0)


class _Endpoint(_Called, _Read):
    """Calls over connections of our own."""


class _Encoded(Section):
    image_format: Literal["png", "jpeg"] | None = Field(
        None, description="how images are sent (png)"
    )
    image_quality: int | None = Field(None, description="of JPEG (95)", ge=1, le=100)
    max_image_bytes: int | None = Field(None, description="larger is refused (2e7)")


class _Talks(_Paid, _Encoded):
    model: str = Field(description="what the server calls the model")
    template: str | None = Field(
        None,
        description="words of the prompt (zero-shot): zero-shot, few-shot or chain-of-thought, "
        "the papers' own, endobench or medtest, or a text file such as my.txt with {question}, "
        "{options}, {words}, or with {questions}",
    )
    per_call: Literal["one", "all"] | None = Field(
        None, description="questions that one call answers (one)"
    )
    max_tokens: int | None = Field(None, description="longest reply (512)", ge=1)
    max_input_tokens: int | None = Field(
        None, description="a prompt and its image are no more; for the cap on cost (4096)", ge=0
    )

    def arguments(self, given: dict[str, Any]) -> dict[str, Any]:
        return renamed(given, {"url": "base_url", "per_call": "answers"})


class _Chat(_Talks):
    url: str | None = Field(
        None,
        description=f"address ending in /v1 (default: OpenAI); {_QUERY}",
    )
    key: str | None = Field(
        None,
        description="the environment variable that holds the key (default: OPENAI_API_KEY, where "
        "no url is given)",
    )
    yes_from: Literal["auto", "logprobs", "structured", "words"] | None = Field(
        None, description="where P(yes) comes from (auto: the first that works)"
    )
    detail: Literal["auto", "low", "high"] | None = Field(
        None, description="how closely to look, where the server offers it"
    )
    options: dict[str, Any] | None = Field(
        None,
        description="goes into the request (temperature = 0); ${NAME} in a text is read from the "
        "environment; extra_headers and extra_query as headers and the url's query",
    )


class OpenAISection(_Endpoint, _Chat):
    """A chat model that sees, at OpenAI or any server that speaks its protocol."""

    kind: Literal["openai"] = "openai"


class _Batched(_Paid, _Read):
    batch_size: int | None = Field(None, description="calls drawn and sent together (64)", ge=1)
    batch_factor: float | None = Field(
        None, description="what a call costs in a batch, as a share of the prices (0.5)", ge=0
    )
    retries: int = Field(2, description="further batches for calls that failed", ge=0)
    timeout: float = Field(
        600.0, description="seconds that sending a batch, or reading its results, may take", gt=0
    )
    poll_seconds: float | None = Field(
        None,
        description="pause before the first look at a batch (5); each next is half as long again, "
        "up to 24 times the first",
        gt=0,
    )
    max_file_bytes: int | None = Field(
        None, description="longer results of a batch are not read (64000000)", ge=1
    )

    def arguments(self, given: dict[str, Any]) -> dict[str, Any]:
        if "poll_seconds" in given:
            from ..models import Polling

            first = given.pop("poll_seconds")
            given["polling"] = Polling(first, longest=24 * first)
        return super().arguments(given)


class OpenAIBatchSection(_Batched, _Chat):
    """The same, asked in batches that are answered within a day, at half the price."""

    kind: Literal["openai-batch"] = "openai-batch"


class _Messages(_Talks):
    url: str | None = Field(None, description=f"another address than Anthropic's; {_QUERY}")
    key: str | None = Field(
        None, description="the environment variable that holds the key (ANTHROPIC_API_KEY)"
    )
    yes_from: Literal["auto", "structured", "stated", "words"] | None = Field(
        None,
        description="P(yes): a number given to a tool, or stated, or 1 or 0 (auto: what works)",
    )
    options: dict[str, Any] | None = Field(
        None, description="goes into the request; ${NAME} in a text is read from the environment"
    )


class AnthropicSection(_Endpoint, _Messages):
    """A model that sees at Anthropic."""

    kind: Literal["anthropic"] = "anthropic"


class AnthropicBatchSection(_Batched, _Messages):
    """The same, asked in batches that are answered within a day, at half the price."""

    kind: Literal["anthropic-batch"] = "anthropic-batch"


class InspectSection(_Called, _Talks):
    """A model of any provider that Inspect knows."""

    kind: Literal["inspect"] = "inspect"
    model: str = Field(description="Inspect's name of it, PROVIDER/NAME, as in 'inspect eval'")
    url: str | None = Field(None, description=f"another address than the provider's; {_QUERY}")
    key: str | None = Field(
        None,
        description="the environment variable that holds the key (default: the one that Inspect's "
        "provider reads)",
    )
    yes_from: Literal["auto", "logprobs", "words"] | None = Field(
        None, description="where P(yes) comes from (auto: the first that works)"
    )
    detail: Literal["auto", "low", "high"] | None = Field(
        None, description="how closely to look, where the provider offers it"
    )
    options: dict[str, Any] | None = Field(
        None,
        description="fields of Inspect's GenerateConfig (temperature = 0); ${NAME} in a text is "
        "read from the environment",
    )
    provider: dict[str, Any] | None = Field(
        None,
        description="arguments of Inspect's provider, as -M of 'inspect eval'; ${NAME} in a text "
        "is read from the environment",
    )


class OpenInferenceSection(_Endpoint, Tensors):
    """Triton, KServe, MLflow."""

    kind: Literal["open-inference"] = "open-inference"
    url: str = Field(description=f"the server's root; {_QUERY}")
    model: str = Field(description="what the server calls the model")
    headers: dict[str, str] | None = Field(None, description=_HEADERS)

    def arguments(self, given: dict[str, Any]) -> dict[str, Any]:
        return given if self.version is None else {**given, "version": self.version}


class HttpSection(_Endpoint, _Encoded):
    """A server that takes and gives any JSON."""

    kind: Literal["http"] = "http"
    url: str = Field(description=f"where to post; {_QUERY}")
    request: dict[str, Any] = Field(
        description="the JSON to post; {image}, {concepts}, {concept}, {question}, {options}, "
        "{words} are filled in, and ${NAME} from the environment"
    )
    response: str | dict[str, str] = Field(
        description="where the answers stand, e.g. outputs.0.scores, or one per concept"
    )
    headers: dict[str, str] | None = Field(None, description=_HEADERS)
    input_tokens: str | None = Field(None, description="where the reply counts tokens sent")
    output_tokens: str | None = Field(None, description="where it counts those answered")
    most_input_tokens: int | None = Field(None, description="a call sends no more", ge=0)
    most_output_tokens: int | None = Field(None, description="a call answers no more", ge=0)

    def named(self) -> dict[str, Any]:
        return {"name": self.name or name_of_url(self.url)}  # as written, before keys are in it


def _gather(
    given: dict[str, Any], name: str, made: Callable[..., Any], fields: Mapping[str, str]
) -> None:
    """Replaces the fields that are given by one argument made of them."""
    options = {argument: given.pop(field) for field, argument in fields.items() if field in given}
    if options:
        given[name] = made(**options)
