"""From a SPEC.toml to its space and its model: what planning an audit needs, without PyTorch."""

from collections.abc import Sequence
from pathlib import Path

from ..datasets import Dataset
from ..engine.audit_key import CONTENT, version_of
from ..errors import InputError, ModelError
from ..models import ModelDefaults, ModelUnderTest, adapted_model
from ..models.local.recorded import RecordedCaptions
from ..oracles import REGISTRY as ORACLES
from ..relations import REGISTRY as RELATIONS
from ..space import QuestionSpace
from ..types import Answer, CallMode, Prompt, Unanswered
from ..utils.files import hash_file
from . import Spec
from .model_section import ModelSection
from .models import PlugInSection, PythonSection
from .oracles import CaptionOracleSection
from .relations import build_relations, locates
from .workers import Worked


def build_space(spec: Spec, base: Path) -> QuestionSpace:
    """The question space of a spec; relative paths start at ``base``."""
    dataset = spec.dataset.build(base)
    if spec.regions is not None:
        dataset = spec.regions.build(dataset)
    if spec.detector is not None:
        _check_detector(spec)
        from ..oracles.captions.detectors import Detected

        dataset = Detected(dataset, spec.detector.build(base))
    return QuestionSpace(
        dataset,
        build_relations(spec.space, dataset, base),
        severities=spec.space.severities,
        oracle=spec.oracle.build(base, dataset),
        seed=spec.space.seed,
        without_region=spec.space.without_region,
    )


def _check_detector(spec: Spec) -> None:
    """Raises InputError for a detector where nothing depends on what is located in images."""
    captions = isinstance(spec.oracle, CaptionOracleSection)
    relations = [name for name in spec.space.relations if RELATIONS.is_code(name) or locates(name)]
    if not (captions or relations or ORACLES.is_code(spec.oracle.kind)):
        raise InputError(
            f"detector: expected an oracle or a relation that asks where things are, such as "
            f"kind = 'captions' in [oracle] or relations = ['reic'], got oracle "
            f"{spec.oracle.kind!r} and relations {spec.space.relations}; leave [detector] out"
        )


def build_model(spec: Spec, base: Path, dataset: Dataset) -> ModelUnderTest:
    """The model of a spec, with its version; relative paths start at ``base``."""
    captions = isinstance(spec.oracle, CaptionOracleSection)
    section = _section(spec)
    worked = section.worked(base) if isinstance(section, Worked) else None
    model = adapted_model(worked or section.build(base, dataset, captions=captions))
    version = spec.model.version or version_of(model) or _content(spec.model.file(), base)
    if version is not None:
        model.version = version
    return model


def unworked(spec: Spec) -> Spec:
    """The spec with a model that is held without workers."""
    if not isinstance(spec.model, Worked):
        return spec
    return spec.model_copy(update={"model": spec.model.unworked()})


def _section(spec: Spec) -> ModelSection:
    """The model's section, its logits those of classes where the oracle judges those."""
    section = spec.model
    if not isinstance(section, PythonSection | PlugInSection) or section.output != "logits":
        return section
    classes = spec.oracle.kind in ("top-class", "ordinal")
    return section.model_copy(update={"output": "class-logits"}) if classes else section


def _content(file: str | None, base: Path) -> str | None:
    """A version by hashing the file that holds the model; None where there is none."""
    path = base / file if file else None
    return CONTENT + hash_file(path) if path is not None and path.is_file() else None


def model_of(spec: Spec, base: Path, space: QuestionSpace, *, code: bool = True) -> ModelUnderTest:
    """The model, checked against the space; where it is code, and ``code`` is False, it is not
    imported, and a `NotImported` stands in its place."""
    if isinstance(spec.model, PythonSection | PlugInSection) and not code:
        return NotImported(spec.model)
    model = build_model(spec if code else unworked(spec), base, space.dataset)
    if isinstance(model, RecordedCaptions):
        model.check(space.dataset, space.variants)
    return model


class NotImported(ModelDefaults):
    """Stands for a model of code that is not to be imported: what is known of it without.

    ``answers``: "all", as with callables and torch modules, unless the spec says otherwise.
    """

    takes_words = True  # not known before it is imported: an audit says so where it does not

    def __init__(self, section: PythonSection | PlugInSection) -> None:
        code = section.target if isinstance(section, PythonSection) else section.kind
        self.name = section.name or code
        self.answers: CallMode = section.per_call or "all"

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        raise ModelError(f"model {self.name!r}: was not imported, to plan; it cannot be asked")
