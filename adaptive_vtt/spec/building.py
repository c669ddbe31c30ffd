"""From a SPEC.toml to the dataset, space, model and audit that it describes."""

from collections.abc import Callable, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

from ..audit import Audit
from ..datasets import (
    Dataset,
    fashion,
    from_class_folders,
    from_coco,
    from_endobench,
    from_idrid,
    from_images,
    from_isic,
    from_masks,
    from_medmnist,
    from_medvqa,
    from_voc,
    phantom,
    read_table,
    scenes,
)
from ..engine.audit_key import CONTENT, version_of
from ..errors import InputError, ModelError, one_line
from ..models import ModelDefaults, ModelUnderTest, Recorded, Simulated, adapted_model, load
from ..models.local.recorded_captions import RecordedCaptions
from ..oracles import (
    Consistency,
    ContainsTruth,
    Correctness,
    MaskConsistency,
    MaskDrop,
    MultipleChoice,
    OracleDefaults,
    Ordinal,
    TopClass,
)
from ..space import QuestionSpace
from ..surrogates import embed
from ..types import Answer, CallMode, Prompt, Unanswered
from ..utils.files import hash_file
from ..utils.tables import check_width, restored
from . import DatasetSpec, ModelSpec, OracleSpec, Spec
from .adapters import ADAPTERS, build_adapter
from .captions import build_captioner, build_oracle, build_relations, detected

ORACLES: dict[str, type[OracleDefaults]] = {
    "correctness": Correctness,
    "top-class": TopClass,
    "ordinal": Ordinal,
    "consistency": Consistency,
    "mask-drop": MaskDrop,
    "mask-consistency": MaskConsistency,
    "multiple-choice": MultipleChoice,
    "contains-truth": ContainsTruth,
}

CAPTIONS = ("captions", "caption-classes")
"""Kinds of oracles about captions."""

T = TypeVar("T")


def build_space(spec: Spec, base: Path) -> QuestionSpace:
    """The question space of a spec; relative paths start at ``base``."""
    dataset = detected(_dataset(spec.dataset, base), spec.detector, base)
    return QuestionSpace(
        dataset,
        build_relations(spec.space, dataset),
        severities=spec.space.severities,
        oracle=_oracle(spec.oracle, base, dataset),
        seed=spec.space.seed,
    )


def build_model(spec: Spec, base: Path, dataset: Dataset) -> ModelUnderTest:
    """The model of a spec, with its version; relative paths start at ``base``."""
    model = adapted_model(_model(spec, base, dataset))
    version = spec.model.version or version_of(model) or _content(spec.model, base)
    if version is not None:
        model.version = version
    return model


def _content(section: ModelSpec, base: Path) -> str | None:
    """A version by hashing the file that holds the model; None where there is none."""
    files = {"python": section.target, "recorded": section.answers, "onnx": section.path}
    name = files.get(section.kind)
    if name is None:
        return None
    path = base / (name.rpartition(":")[0] if section.kind == "python" else name)
    return CONTENT + hash_file(path) if path.is_file() else None


def _model(spec: Spec, base: Path, dataset: Dataset) -> ModelUnderTest:
    section = spec.model
    if section.kind == "captioner":
        return build_captioner(section, dataset)
    if section.kind in ADAPTERS:
        return build_adapter(section, base)
    if section.kind == "recorded":
        answers = base / _need(section.answers, "model.answers")
        if spec.oracle.kind in CAPTIONS:
            return RecordedCaptions.read(answers, section.name)
        return _recorded(answers, section.name)
    target = _need(section.target, "model.target")
    if section.kind == "simulated":
        return Simulated.paper(target, dataset, seed=section.seed)
    model = adapted_model(load(target, base=base))
    if section.name is not None:
        model.name = section.name
    if section.per_call not in (None, model.answers):
        raise InputError(
            f"model.per_call: expected {model.answers!r}, as the model says, "
            f"got {section.per_call!r}"
        )
    return model


def build_audit(
    spec: Spec, base: Path, *, check: Callable[[QuestionSpace], None] | None = None, **options: Any
) -> Audit:
    """The audit of a spec; ``options`` (journal, notes, seed, strategy ...) go before it.

    ``check`` is called with the space before any code that the spec names is imported.
    """
    space = build_space(spec, base)
    if check is not None:
        check(space)
    space, model, chosen = build_parts(spec, base, space)
    return Audit(space, model, **{**chosen, **options})


def build_parts(
    spec: Spec, base: Path, space: QuestionSpace | None = None, *, code: bool = True
) -> tuple[QuestionSpace, ModelUnderTest, dict[str, Any]]:
    """The space, the model and all other arguments of a spec's audit.

    ``space``: where it was built already. Code that the spec names is imported last, and with
    ``code`` False not at all: proxies that are code are left out, and in place of a Python model
    stands a `NotImported`.
    """
    space = build_space(spec, base) if space is None else space
    section, certify = spec.audit, spec.certify
    if certify.features != "default":
        space.dataset.features = embed(space.dataset, device=section.device)
    proxies = {n: s for n, s in (certify.proxies or {}).items() if code or _is_data(s)}
    options: dict[str, Any] = {
        **section.model_dump(),
        **certify.model_dump(exclude={"proxies", "prior_journal", "features"}),
        "stop": spec.stop.rule(),
        "proxies": {n: _proxy(s, base, n) for n, s in proxies.items()},
        "prior_journal": base / certify.prior_journal if certify.prior_journal else None,
    }
    if spec.model.kind == "python" and not code:
        return space, NotImported(spec.model), options
    model = build_model(spec, base, space.dataset)
    if isinstance(model, RecordedCaptions):
        model.check(space.dataset, space.variants)
    return space, model, options


class NotImported(ModelDefaults):
    """Stands for a Python model that is not to be imported: what is known of it without.

    ``answers``: "all", as with callables and torch modules, unless the spec says otherwise.
    """

    def __init__(self, section: ModelSpec) -> None:
        self.name = section.name or section.target or "model"
        self.answers: CallMode = section.per_call or "all"

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        raise ModelError(f"model {self.name!r}: was not imported, to plan; it cannot be asked")


def _is_data(proxy: str) -> bool:
    return proxy.endswith(".csv")


def _proxy(source: str, base: Path, name: str) -> ModelUnderTest:
    if _is_data(source):
        return _recorded(base / source, name)
    return load(source, base=base)


def _oracle(section: OracleSpec, base: Path, dataset: Dataset) -> OracleDefaults:
    """The oracle of a spec; raises InputError for an option that its kind does not have."""
    if section.kind in CAPTIONS:
        return build_oracle(section, base, dataset)
    made = ORACLES[section.kind]
    options = section.model_dump(exclude={"kind"}, exclude_none=True)
    known = signature(made).parameters
    for name in options:
        if name not in known:
            raise InputError(f"oracle.{name}: is no field of kind {section.kind!r}")
    return made(**options)


_TABLE = ("images", "id_column", "file_column", "concepts", "metadata", "broken", "allow_outside")
_LOADERS: dict[str, tuple[Callable[..., Dataset], str | None, tuple[str, ...]]] = {
    "table": (read_table, "labels", _TABLE),
    "fashion": (fashion, None, ()),
    "medmnist": (from_medmnist, "path", ("flag", "size", "split", "classes", "most_bytes")),
    "masks": (from_masks, "path", ("concept", "images", "masks", "empty", "broken")),
    "classes": (from_class_folders, "path", ("classes", "broken")),
    "isic": (from_isic, "path", ("images", "masks", "broken")),
    "idrid": (from_idrid, "path", ("split", "broken")),
    "endobench": (from_endobench, "path", ("tasks", "broken", "looks")),
    "medvqa": (from_medvqa, "path", ("questions", "several", "broken", "allow_outside")),
    "phantom": (phantom, "count", ("size", "seed", "polyps", "concepts")),
    "coco": (from_coco, "labels", ("images", "crowds", "outlines", "broken", "allow_outside")),
    "voc": (from_voc, "path", ("split", "difficult", "broken", "allow_outside")),
    "images": (from_images, "path", ("broken",)),
    "scenes": (scenes, "count", ("seed",)),
}
"""Kind of dataset -> its loader, the field that it needs, and those that it takes."""


def _dataset(section: DatasetSpec, base: Path) -> Dataset:
    """The dataset of a spec; fields that are not set are left to the loader's defaults."""
    loader, needed, taken = _LOADERS[section.kind]
    fields = DatasetSpec.model_fields
    given = {name: value for name, value in section if value != fields[name].default}
    given.pop("kind", None)
    for name in given:
        if name not in (needed, *taken):
            raise InputError(f"dataset.{name}: is no field of kind {section.kind!r}")
    first = [] if needed is None else [_need(given.pop(needed, None), f"dataset.{needed}")]
    if needed in ("path", "labels"):
        first = [base / first[0]]
    if section.kind in ("table", "coco") and section.images is not None:
        given["images"] = base / section.images
    return loader(*first, **given)


def _recorded(path: Path, name: str | None) -> Recorded:
    import pandas as pd

    check_width(path)
    try:
        table = restored(pd.read_csv(path, dtype={"sample": str}))
    except (OSError, ValueError, pd.errors.ParserError) as error:
        raise InputError(f"{path}: cannot read recorded answers: {one_line(error)}") from None
    return Recorded(table, name=name or path.stem)


def _need(value: T | None, field: str) -> T:
    if value is None:
        raise InputError(f"{field}: expected a value for this kind, got nothing")
    return value
