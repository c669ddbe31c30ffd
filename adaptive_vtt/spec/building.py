"""From a SPEC.toml to the dataset, space, model and audit that it describes."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .. import surrogates
from ..audit import Audit
from ..datasets import Dataset
from ..engine.audit_key import CONTENT, version_of
from ..errors import InputError, ModelError
from ..models import ModelDefaults, ModelUnderTest, adapted_model, load
from ..models.local.recorded_captions import RecordedCaptions
from ..space import QuestionSpace
from ..strategies import Named, default, named
from ..types import Answer, CallMode, Prompt, Unanswered
from ..utils.files import hash_file
from . import Spec
from .models import ModelSection, PlugInSection, PythonSection
from .oracles import CaptionClassesJudge, CaptionsJudge, OrdinalJudge, TopClassJudge
from .recorded import recorded
from .relations import build_relations


def build_space(spec: Spec, base: Path) -> QuestionSpace:
    """The question space of a spec; relative paths start at ``base``."""
    dataset = spec.dataset.build(base)
    if spec.detector is not None:
        from ..captions.detectors import Detected

        dataset = Detected(dataset, spec.detector.build(base))
    return QuestionSpace(
        dataset,
        build_relations(spec.space, dataset, base),
        severities=spec.space.severities,
        oracle=spec.oracle.build(base, dataset),
        seed=spec.space.seed,
    )


def build_model(spec: Spec, base: Path, dataset: Dataset) -> ModelUnderTest:
    """The model of a spec, with its version; relative paths start at ``base``."""
    captions = isinstance(spec.oracle, CaptionsJudge | CaptionClassesJudge)
    model = adapted_model(_section(spec).build(base, dataset, captions=captions))
    version = spec.model.version or version_of(model) or _content(spec.model.file(), base)
    if version is not None:
        model.version = version
    return model


def _section(spec: Spec) -> ModelSection:
    """The model's section, its logits those of classes where the oracle judges those."""
    section = spec.model
    if not isinstance(section, PythonSection | PlugInSection) or section.output != "logits":
        return section
    classes = isinstance(spec.oracle, TopClassJudge | OrdinalJudge)
    return section.model_copy(update={"output": "class-logits"}) if classes else section


def _content(file: str | None, base: Path) -> str | None:
    """A version by hashing the file that holds the model; None where there is none."""
    path = base / file if file else None
    return CONTENT + hash_file(path) if path is not None and path.is_file() else None


def build_audit(
    spec: Spec, base: Path, *, check: Callable[[QuestionSpace], None] | None = None, **options: Any
) -> Audit:
    """The audit of a spec; ``options`` (journal, notes, seed, strategy ...) go before it.

    ``check`` is called with the space before the code of model, proxies and strategy is
    imported.
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

    ``space``: where it was built already. Models and proxies that are code are imported last,
    and with ``code`` False not at all: such proxies are left out, and in place of such a model
    stands a `NotImported`.
    """
    space = build_space(spec, base) if space is None else space
    section, certify = spec.audit, spec.certify
    if certify.features != "default":
        space.dataset.features = surrogates.embed(space.dataset, device=section.device)
    proxies = {n: s for n, s in (certify.proxies or {}).items() if code or _is_data(s)}
    options: dict[str, Any] = {
        **section.model_dump(exclude={"strategy_options"}),
        **certify.model_dump(exclude={"proxies", "prior_journal", "features"}),
        "strategy": _strategy(spec, base),
        "surrogate": _surrogate(spec, base),
        "stop": spec.stop.limit(),
        "goal": spec.stop.goal(),
        "proxies": {n: _proxy(s, base, n) for n, s in proxies.items()},
        "prior_journal": base / certify.prior_journal if certify.prior_journal else None,
    }
    if isinstance(spec.model, PythonSection | PlugInSection) and not code:
        return space, NotImported(spec.model), options
    model = build_model(spec, base, space.dataset)
    if isinstance(model, RecordedCaptions):
        model.check(space.dataset, space.variants)
    return space, model, options


def _strategy(spec: Spec, base: Path) -> Named:
    name = spec.audit.strategy or default(spec.certify.certifies)
    return named(name, spec.audit.strategy_options, base)


def _surrogate(spec: Spec, base: Path) -> bool | surrogates.Named:
    """Raises InputError where one is named and none is to be used."""
    name = spec.audit.surrogate
    if name is None:
        return spec.certify.surrogate
    if not spec.certify.surrogate:
        raise InputError(
            "surrogate: expected a name in [audit] or surrogate = false in [certify], got both "
            f"({name!r})"
        )
    return surrogates.named(name, base)


class NotImported(ModelDefaults):
    """Stands for a model of code that is not to be imported: what is known of it without.

    ``answers``: "all", as with callables and torch modules, unless the spec says otherwise.
    """

    def __init__(self, section: PythonSection | PlugInSection) -> None:
        code = section.target if isinstance(section, PythonSection) else section.kind
        self.name = section.name or code
        self.answers: CallMode = section.per_call or "all"

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        raise ModelError(f"model {self.name!r}: was not imported, to plan; it cannot be asked")


def _is_data(proxy: str) -> bool:
    return proxy.endswith(".csv")


def _proxy(source: str, base: Path, name: str) -> ModelUnderTest:
    if _is_data(source):
        return recorded(base / source, name)
    return load(source, base=base)
