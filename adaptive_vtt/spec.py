"""SPEC.toml: what to audit, written down. Every field is described here, and only here."""

import tomllib
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .errors import InputError, one_line, unknown
from .stopping import MaxQuestions, StoppingRule, UncertaintyBelow, WallClock


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class DatasetSpec(_Section):
    """The images and their labels."""

    kind: Literal[
        "table",
        "fashion",
        "medmnist",
        "masks",
        "classes",
        "isic",
        "idrid",
        "phantom",
        "endobench",
        "medvqa",
    ] = Field(
        "table",
        description="table: a CSV or Parquet of labels and a folder of images; fashion: the "
        "bundled set; medmnist: an .npz of MedMNIST; masks: folders of images and masks; "
        "classes: a folder of images per class; isic: ISIC 2018 task 2; idrid: IDRiD "
        "segmentation; phantom: synthetic endoscopy frames; endobench: its TSV or Parquet; medvqa: "
        "MEDVQA-GI's gt.json and images",
    )
    path: str | None = Field(
        None, description="medmnist: the .npz or its folder; masks, classes, isic, idrid: folder"
    )
    labels: str | None = Field(None, description="table: CSV or .parquet with one row per sample")
    images: str | None = Field(
        None,
        description="table: folder of images; leave out where answers are recorded; "
        "masks, isic: folder within path (default: found by its usual name)",
    )
    masks: str | None = Field(
        None, description="masks, isic: folder within path (default: found by its usual name)"
    )
    id_column: str = Field("id", description="table: column of sample ids")
    file_column: str | None = Field(
        None, description="table: column of file names (default: the id, any image ending)"
    )
    concepts: list[str] | None = Field(
        None,
        description="table: columns to ask about (default: all others), cells 0, 1 or empty; "
        "phantom: what to ask about (default: everything it knows)",
    )
    metadata: list[str] | None = Field(
        None, description="table: columns that describe samples and are no concepts"
    )
    concept: str | None = Field(
        None, description="masks: what the masks show (default: polyp)", min_length=1
    )
    flag: str | None = Field(
        None, description="medmnist: the set, e.g. pathmnist (default: from the file's name)"
    )
    size: int | None = Field(
        None, description="medmnist: 28, 64, 128 or 224; phantom: side in pixels (default: 256)"
    )
    split: str | None = Field(
        None,
        description="medmnist: train, val or test (default); idrid: train, test (default: all)",
    )
    classes: Literal["all", "own"] | None = Field(
        None,
        description="medmnist, classes: ask an image about all classes (default), or its own alone",
    )
    empty: Literal["refuse", "skip", "absent"] | None = Field(
        None,
        description="masks: an empty mask is an error (default), left out, or means absent",
    )
    broken: Literal["refuse", "skip"] | None = Field(
        None, description="files that cannot be decoded are an error (default), or left out"
    )
    tasks: list[str] | None = Field(None, description="endobench: tasks to ask (default: all)")
    looks: bool | None = Field(None, description="endobench: predict by what images look like, too")
    questions: list[int] | None = Field(
        None, description="medvqa: their numbers, 1 to 18 (default: the 14 that are not vague)"
    )
    several: Literal["all", "any"] | None = Field(
        None, description="medvqa: of several true answers, a reply needs all (default) or any"
    )
    count: int | None = Field(None, description="phantom: number of frames", ge=1)
    seed: int | None = Field(None, description="phantom: same seed, same frames (default: 0)")
    polyps: float | None = Field(
        None, description="phantom: share of frames with polyps (default: 0.5)", ge=0, le=1
    )


class ModelSpec(_Section):
    """The model under test."""

    kind: Literal[
        "python", "recorded", "simulated", "openai", "open-inference", "http", "onnx", "subprocess"
    ] = Field(
        "python",
        description="python: a callable or torch module; recorded: a CSV of answers; simulated: "
        "one of the paper's simulated models; openai: a chat model that sees, at OpenAI or any "
        "server that speaks its protocol; open-inference: Triton, KServe, MLflow; http: any "
        "JSON; onnx: a file; subprocess: a program that answers JSON lines",
    )
    target: str | None = Field(
        None,
        description="python: 'file.py:name' or 'package.module:name', a callable from a list "
        "of H x W x C uint8 images to an array n x C of P(yes), or of masks n x C x H x W; "
        "simulated: unbiased, biased or negatively-biased",
    )
    answers: str | None = Field(
        None, description="recorded: CSV with sample, relation, severity, one column per concept"
    )
    name: str | None = Field(None, description="what the report calls the model")
    model: str | None = Field(
        None, description="openai, open-inference: what the server calls the model"
    )
    url: str | None = Field(
        None,
        description="openai: address ending in /v1 (default: OpenAI); open-inference: the "
        "server's root; http: where to post",
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
    price_per_call: float | None = Field(None, description="price of a call", ge=0)
    price_input: float | None = Field(None, description="price of price_tokens tokens sent", ge=0)
    price_output: float | None = Field(
        None, description="price of price_tokens tokens answered", ge=0
    )
    price_tokens: int | None = Field(None, description="tokens the prices are for (10^6)", ge=1)
    template: str | None = Field(
        None, description="openai: words of the prompt: zero-shot, few-shot or chain-of-thought"
    )
    per_call: Literal["one", "all"] | None = Field(
        None, description="openai (one), subprocess (all): questions that one call answers"
    )
    yes_from: Literal["auto", "logprobs", "structured", "words"] | None = Field(
        None, description="openai: where P(yes) comes from (auto: the first that works)"
    )
    detail: Literal["auto", "low", "high"] | None = Field(
        None, description="openai: how closely to look, where the server offers it"
    )
    max_tokens: int | None = Field(None, description="openai: longest reply (512)", ge=1)
    max_input_tokens: int | None = Field(
        None, description="openai: a prompt and its image are no more; for the cap on cost (4096)"
    )
    options: dict[str, Any] | None = Field(
        None, description="openai: goes into the request as it is (temperature = 0)"
    )
    image_format: Literal["png", "jpeg"] | None = Field(
        None, description="openai, http: how images are sent (png)"
    )
    image_quality: int | None = Field(None, description="openai, http: of JPEG (95)", ge=1, le=100)
    max_image_bytes: int | None = Field(None, description="openai, http: larger is refused (2e7)")
    request: dict[str, Any] | None = Field(
        None,
        description="http: the JSON to post; {image}, {concepts}, {concept}, {question}, "
        "{options} are filled in",
    )
    response: str | dict[str, str] | None = Field(
        None, description="http: where the answers stand, e.g. outputs.0.scores, or one per concept"
    )
    headers: dict[str, str] | None = Field(
        None, description="http, open-inference: $NAME in a value is read from the environment"
    )
    input_tokens: str | None = Field(None, description="http: where the reply counts tokens sent")
    output_tokens: str | None = Field(None, description="http: where it counts those answered")
    most_input_tokens: int | None = Field(None, description="http: a call sends no more")
    most_output_tokens: int | None = Field(None, description="http: a call answers no more")
    version: str | None = Field(None, description="open-inference: of the model")
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


class SpaceSpec(_Section):
    """Which questions there are."""

    relations: list[str] = Field(
        ["identity"], description="relations to ask under; see 'avtt relations list'", min_length=1
    )
    severities: list[int] | None = Field(
        None, description="levels of the graded relations (default: all)", min_length=1
    )


class OracleSpec(_Section):
    """What makes an answer wrong."""

    kind: Literal[
        "correctness",
        "top-class",
        "ordinal",
        "consistency",
        "mask-drop",
        "mask-consistency",
        "multiple-choice",
        "contains-truth",
    ] = Field(
        "correctness",
        description="correctness: P(yes) on the wrong side of the truth; top-class: the "
        "likeliest of classes that exclude each other is not the true one; ordinal: how far it "
        "is from the true grade; consistency: another answer than to the source image, no label "
        "needed; mask-drop: a segmentation much worse than the source image's; "
        "mask-consistency: a mask unlike the source image's, no true mask needed; "
        "multiple-choice: another letter; contains-truth: a reply without the true answer",
    )
    threshold: float | None = Field(
        None,
        description="correctness, consistency: Yes from this on (default: 0.5); "
        "mask-consistency: least overlap (default: 0.75)",
        gt=0,
        le=1,
    )
    thresholds: list[float] | None = Field(
        None,
        description="mask-drop: relative drops of the score above these are failures "
        "(default: 0.25 and 0.5)",
        min_length=1,
    )
    metric: Literal["dice", "iou"] | None = Field(
        None, description="mask-drop, mask-consistency: overlap of masks (default: dice)"
    )
    faithful: bool | None = Field(
        None, description="multiple-choice: read replies by EndoBench's own rule, quirks and all"
    )
    strict: bool | None = Field(
        None, description="contains-truth: whole words only (default: true)"
    )
    accept: Literal["either", "yes", "name"] | None = Field(
        None, description="contains-truth: what is right where an instrument was added"
    )
    unanswered_loss: float | None = Field(
        None, description="loss of a question without answer (default: 1)", ge=0, le=1
    )


class AuditSpec(_Section):
    """How to choose questions."""

    strategy: str = Field("uncertainty+unpredictability", description="which questions come next")
    budget: int | None = Field(None, description="at most so many calls, ever", ge=1)
    max_cost: float | None = Field(
        None, description="at most so much money, in the unit of the model's prices", gt=0
    )
    seed: int = Field(0, description="same seed, same audit")
    floor: float | None = Field(
        None,
        description="share of the law that is even (default: 0.2 to certify, else 0)",
        ge=0,
        le=1,
    )
    candidates: int = Field(4096, description="unseen questions looked at per draw", ge=1)
    batch: int = Field(1, description="calls asked at a time, beliefs frozen", ge=1)
    form: Literal["std", "variance"] = Field(
        "std", description="uncertainty as area of 95 % regions (std) or integral of variances"
    )
    history: Literal["truth", "answer"] = Field(
        "truth", description="predictability given true answers (Geman) or the model's"
    )
    device: str = Field("cpu", description="where the GPs live: cpu, cuda or auto")


class StopSpec(_Section):
    """When to stop, beside the budget; the first rule that is met ends the audit."""

    questions: int | None = Field(None, description="answered questions", ge=1)
    uncertainty: float | None = Field(
        None, description="mean uncertainty of the answer GPs, as a share of its prior", gt=0, le=1
    )
    max_uncertainty: float | None = Field(
        None, description="the same for the most uncertain side of any concept", gt=0, le=1
    )
    seconds: float | None = Field(None, description="seconds of audit", gt=0)

    def rule(self) -> StoppingRule | None:
        """The rules that are set, joined by "or"; None where none is."""
        rules: list[Any] = []
        if self.questions is not None:
            rules.append(MaxQuestions(self.questions))
        if self.uncertainty is not None:
            rules.append(UncertaintyBelow(self.uncertainty))
        if self.max_uncertainty is not None:
            rules.append(UncertaintyBelow(self.max_uncertainty, over="max"))
        if self.seconds is not None:
            rules.append(WallClock(self.seconds))
        if not rules:
            return None
        joined = rules[0]
        for rule in rules[1:]:
            joined = joined | rule
        return joined


class CertifySpec(_Section):
    """What to certify. With neither half_width nor at_most nothing is certified."""

    half_width: float | None = Field(
        None, description="stop when every target is known to this, either way", gt=0, lt=1
    )
    at_most: float | None = Field(
        None, description="stop when every target is surely above, or at most, this", gt=0, lt=1
    )
    confidence: float = Field(
        0.95, description="probability that all intervals hold at all times", gt=0, lt=1
    )
    targets: list[str] = Field(
        ["concepts", "relations"],
        description="overall, concepts, concept:NAME, relations, severities, group:COLUMN, "
        "misclassified, relation-concepts, relation-sides, "
        "or names of filters",
        min_length=1,
    )
    where: dict[str, dict[str, list[Any]]] | None = Field(
        None,
        description="filters: name -> field -> allowed values; fields: relation, severity, "
        "concept, truth (0 or 1), or a metadata column",
    )
    unanswered: Literal["loss", "both"] = Field(
        "loss", description="unanswered questions count as wrong, or (both) as either"
    )
    features: Literal["default", "efficientnet-lite0"] = Field(
        "default",
        description="image features of the question GP: thumbnails and colours, or an embedding "
        "(pip install 'adaptive-vtt[embedding]')",
    )
    surrogate: bool = Field(True, description="predict losses with the question GP")
    proxies: dict[str, str] | None = Field(
        None, description="cheaper models: name -> CSV of answers, or file.py:name"
    )
    prior_journal: str | None = Field(
        None, description="journal.db of an audit of an earlier version of the model"
    )


class Spec(_Section):
    """A whole SPEC.toml."""

    dataset: DatasetSpec
    model: ModelSpec
    space: SpaceSpec = SpaceSpec.model_validate({})
    oracle: OracleSpec = OracleSpec.model_validate({})
    audit: AuditSpec = AuditSpec.model_validate({})
    stop: StopSpec = StopSpec.model_validate({})
    certify: CertifySpec = CertifySpec.model_validate({})


DEMO = Spec.model_validate(
    {
        "dataset": {"kind": "fashion"},
        "model": {
            "kind": "python",
            "target": "adaptive_vtt.models.fashion_cnn:predict",
            "name": "fashion-cnn",
        },
        "space": {
            "relations": [
                "identity", "gaussian_noise", "defocus_blur", "brightness_up",
                "brightness_down", "contrast_down", "rotation",
            ]
        },
        "audit": {"budget": 3000},
        "certify": {
            "half_width": 0.08,
            "targets": [
                "overall", "relations", "concept:footwear", "concept:upper body",
                "concept:long sleeves", "concept:covers legs",
            ],
        },
    }
)  # fmt: skip


def read_spec(path: Path) -> Spec:
    """The spec at ``path``; raises InputError naming file and field."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is no TOML: {one_line(error)}") from None
    return parse_spec(table, str(path))


def parse_spec(table: dict[str, Any], where: str) -> Spec:
    """A spec from a table as TOML or JSON gives it; raises InputError naming the field."""
    try:
        return Spec.model_validate(table)
    except ValidationError as error:
        raise _sentence(error, where) from None


def _sentence(error: ValidationError, where: str) -> InputError:
    """The first thing wrong, in one sentence with the field and, for names, the nearest one."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        *path, name = [str(part) for part in first["loc"]]
        return unknown("field", name, _fields(path), f"{where}: {'.'.join(path) or 'top level'}")
    if first["type"] == "missing":
        return InputError(f"{where}: {field}: expected this section or field, got nothing")
    if first["type"] == "literal_error":
        choices = first["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        return unknown("value", str(first["input"]), choices, f"{where}: {field}")
    expected = first["msg"].removeprefix("Input should be ").lower()
    return InputError(f"{where}: {field}: expected {expected}, got {first['input']!r}")


def _fields(path: list[str]) -> list[str]:
    model: type[BaseModel] = Spec
    for part in path:
        annotation = model.model_fields[part].annotation
        options = [annotation, *get_args(annotation)]
        model = next(o for o in options if isinstance(o, type) and issubclass(o, BaseModel))
    return list(model.model_fields)
