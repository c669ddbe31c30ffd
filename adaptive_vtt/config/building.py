"""From a SPEC.toml to the dataset, space, model and audit that it describes.

Imports no PyTorch before an audit is built, so that planning one takes no time.
"""

import glob
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .. import surrogates
from ..audit import Audit
from ..certify import named_targets
from ..cohort import Cohort
from ..datasets import Dataset
from ..engine.audit_key import CONTENT, version_of
from ..errors import InputError, ModelError
from ..models import ModelDefaults, ModelUnderTest, adapted_model, load
from ..models.local.recorded import RecordedCaptions, recorded
from ..oracles import REGISTRY as ORACLES
from ..relations import REGISTRY as RELATIONS
from ..relations import RelationDefaults, make, reic, resolve, transformed
from ..relations.medtest import from_files
from ..results.gate import Gated
from ..space import QuestionSpace
from ..stopping import FirstOf, StoppingRule
from ..strategies import default, named
from ..types import Answer, CallMode, Prompt, Unanswered
from ..utils.files import hash_file
from ..utils.options import arguments, options_of
from . import Spec
from .audit import CertifySpec, SpaceSpec
from .models import ModelSection, OwnSection, Worked
from .oracles import CaptionOracleSection

CERTIFY_APART = {"proxies", "prior_journal", "cohort", "features", "surrogate_options"}
"""Fields of [certify] that are no options of an audit as they stand there."""


def build_audit(
    spec: Spec,
    base: Path,
    *,
    check: Callable[[QuestionSpace], None] | None = None,
    space: QuestionSpace | None = None,
    model: ModelUnderTest | None = None,
    **options: Any,
) -> Audit:
    """The audit of a spec; ``options`` (journal, notes, seed, strategy ...) go before it. The name
    of a strategy is taken as the spec's are, ``strategy_options`` beside it go before those of the
    spec where it is the spec's.

    ``check`` is called with the space before the code of model, proxies and strategy is
    imported. ``space``, ``model``: where they were built already.
    """
    space = build_space(spec, base) if space is None else space
    if check is not None:
        check(space)
    space, model, chosen = build_parts(spec, base, space, model)
    if isinstance(name := options.get("strategy"), str):
        own = spec.audit.strategy or default(spec.certify.certifies)
        mine = (spec.audit.strategy_options or {}) if name == own else {}
        given = options.pop("strategy_options", None) or {}
        options["strategy"] = named(name, {**mine, **given}, base)
    return Audit(space, model, **{**chosen, **options})


def build_parts(
    spec: Spec,
    base: Path,
    space: QuestionSpace | None = None,
    model: ModelUnderTest | None = None,
    *,
    code: bool = True,
) -> tuple[QuestionSpace, ModelUnderTest, dict[str, Any]]:
    """The space, the model and all other arguments of a spec's audit.

    ``space``, ``model``: where they were built already. Models and proxies that are code are
    imported last, and with ``code`` False not at all: such proxies are left out, and in place of
    such a model stands a `NotImported`.
    """
    space = build_space(spec, base) if space is None else space
    section, certify = spec.audit, spec.certify
    if certify.features != "default":
        space.dataset.features = surrogates.embed(space.dataset, device=section.device)
    proxies = {n: s for n, s in (certify.proxies or {}).items() if code or _is_data(s)}
    options: dict[str, Any] = {
        **section.model_dump(exclude={"strategy_options", "on_progress"}),
        **certify.model_dump(exclude=CERTIFY_APART),
        "strategy": named(
            section.strategy or default(certify.certifies), section.strategy_options, base
        ),
        "surrogate": _surrogate(certify, base),
        "stop": _stop(spec, space),
        "goal": spec.stop.goal(),
        "proxies": {n: _proxy(s, base, n) for n, s in proxies.items()},
        "prior_journal": base / certify.prior_journal if certify.prior_journal else None,
        "cohort": _cohort(certify.cohort, base),
    }
    model = model_of(spec, base, space, code=code) if model is None else model
    return space, model, options


def _cohort(runs: str | list[str] | None, base: Path) -> Cohort | None:
    if runs is None:
        return None
    inside = glob.escape(str(base)) if base != Path() else ""
    found = [runs] if isinstance(runs, str) else runs
    return Cohort.from_runs(*(Path(inside if glob.has_magic(r) else base, r) for r in found))


def _stop(spec: Spec, space: QuestionSpace) -> StoppingRule | None:
    limit, certify = spec.stop.limit(), spec.certify
    if spec.stop.gate is None:
        return limit
    if not certify.certifies:
        raise InputError(
            "stop.gate: expected an audit that certifies, got neither certify.half_width nor "
            "certify.at_most; give the narrowest interval that you would wait for, such as "
            "half_width = 0.02"
        )
    targets = named_targets(space, certify.targets, certify.where)
    gated = Gated.of(spec.stop.gate, [target.id for target in targets])
    return gated if limit is None else FirstOf((limit, gated))


def _surrogate(certify: CertifySpec, base: Path) -> bool | surrogates.Named:
    """Raises InputError for options where nothing is to predict."""
    named, options = certify.surrogate, certify.surrogate_options
    if isinstance(named, str) or (named and options):
        name = named if isinstance(named, str) else surrogates.QUESTION_GP
        return surrogates.named(name, options, base)
    if options:
        raise InputError(
            "certify.surrogate_options: expected a surrogate that takes them, got surrogate = "
            "false; leave them out"
        )
    return named


def _is_data(proxy: str) -> bool:
    return proxy.endswith(".csv")


def _proxy(source: str, base: Path, name: str) -> ModelUnderTest:
    if _is_data(source):
        return recorded(base / source, name=name)
    return load(source, base=base)


# -- the space ---------------------------------------------------------------------------------


def build_space(spec: Spec, base: Path, dataset: Dataset | None = None) -> QuestionSpace:
    """The question space of a spec; relative paths start at ``base``. ``dataset``: taken in place
    of what [dataset] says."""
    dataset = spec.dataset.build(base) if dataset is None else dataset
    if spec.regions is not None:
        dataset = spec.regions.build(dataset)
    if spec.detector is not None:
        _check_detector(spec)
        from ..oracles.captions.detectors import Detected

        found = Detected(dataset, spec.detector.build(base))
        found.try_out()
        dataset = found
    return QuestionSpace(
        dataset,
        build_relations(spec.space, lambda: dataset, base),
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


_MADE_BY: dict[str, Callable[..., Any]] = {
    "reic": reic.relations,
}
_OPTIONS = {name: [told.name for told in options_of(made)] for name, made in _MADE_BY.items()}
"""Relations that have fields of their own in [space]."""
_LOCATING = ("reduction", "reic")
"""Families whose follow-ups depend on what is located in images."""
_MEDTEST = {"medtest": "segmentation", "medtest/classification": "classification"}
"""Families that take the files of [space.medtest], and the task of each."""


def build_relations(
    section: SpaceSpec, dataset: Callable[[], Dataset], base: Path
) -> list[RelationDefaults]:
    """The relations of a spec, made with its options; relative files start at ``base``.

    ``dataset`` is called for relations that depend on all samples. Raises InputError for an
    unknown name, and for an option whose relation is not there.
    """
    own = section.model_dump(include={n for names in _OPTIONS.values() for n in names})
    options = {name: value for name, value in own.items() if value is not None}
    found: list[RelationDefaults] = []
    if section.medtest is not None and not _MEDTEST.keys() & set(section.relations):
        raise InputError(
            f"space.medtest: expected {' or '.join(_MEDTEST)} among relations {section.relations}"
        )
    for name in section.relations:
        if section.medtest is not None and name in _MEDTEST:
            files = arguments(from_files, section.medtest.given(), base)
            found += from_files(_MEDTEST[name], **files)
            continue
        fields = {field: options.pop(field) for field in _OPTIONS.get(name, ()) if field in options}
        given = {**fields, **(section.options or {}).get(name, {})}
        found += make(name, _completed(name, given, dataset, base), base)
    found += [transformed(**each.given(), base=base) for each in section.transforms or ()]
    for name in sorted(options):
        raise InputError(f"space.{name}: none of relations {section.relations} has this option")
    for name in sorted(set(section.options or {}) - set(section.relations)):
        raise InputError(
            f"space.options: expected some of relations {section.relations}, got {name!r}"
        )
    return resolve(found)


def locates(name: str) -> bool:
    """Whether a relation's follow-ups depend on what is located in images."""
    return name.partition("/")[0] in _LOCATING


def _completed(
    name: str, options: dict[str, Any], dataset_of: Callable[[], Dataset], base: Path
) -> dict[str, Any]:
    """The options of a relation, with what the dataset and files say in place of their names."""
    if name == "reic" and "captions" in options:
        from ..oracles.captions.recorded import OwnNaming, RecordedNaming, source_captions

        said = options.pop("captions")
        if said == reic.OWN:
            return {**options, "naming": OwnNaming()}
        dataset = dataset_of()
        samples = [dataset.sample_id(index) for index in range(len(dataset))]
        naming = RecordedNaming(source_captions(base / said, samples))
        naming.check(dataset)
        return {**options, "naming": naming}
    return options


# -- the model ---------------------------------------------------------------------------------


def build_model(spec: Spec, base: Path, dataset: Dataset) -> ModelDefaults:
    """The model of a spec, with its version; relative paths start at ``base``."""
    captions = isinstance(spec.oracle, CaptionOracleSection)
    section = _section(spec)
    worked = section.worked(base) if isinstance(section, Worked) else None
    model = adapted_model(worked or section.build(base, dataset, captions=captions))
    version = spec.model.version or version_of(model) or _content(spec.model.file(), base)
    if version is not None:
        model.version = version
    return model


def model_of(spec: Spec, base: Path, space: QuestionSpace, *, code: bool = True) -> ModelUnderTest:
    """The model, checked against the space; where it is code, and ``code`` is False, it is not
    imported, and a `NotImported` stands in its place."""
    if isinstance(spec.model, OwnSection) and not code:
        return NotImported(spec.model)
    model = build_model(spec if code else unworked(spec), base, space.dataset)
    if isinstance(model, RecordedCaptions):
        model.check(space.dataset, space.variants)
    return model


def unworked(spec: Spec) -> Spec:
    """The spec with a model that is held without workers."""
    if not isinstance(spec.model, Worked):
        return spec
    return spec.model_copy(update={"model": spec.model.unworked()})


def _section(spec: Spec) -> ModelSection:
    """The model's section, its logits those of classes where the oracle judges those."""
    section = spec.model
    if not isinstance(section, OwnSection) or section.output != "logits":
        return section
    classes = spec.oracle.kind in ("top-class", "ordinal")
    return section.model_copy(update={"output": "class-logits"}) if classes else section


def _content(file: str | None, base: Path) -> str | None:
    """A version by hashing the file that holds the model; None where there is none."""
    path = base / file if file else None
    return CONTENT + hash_file(path) if path is not None and path.is_file() else None


class NotImported(ModelDefaults):
    """Stands for a model of code that is not to be imported: what is known of it without.

    ``answers``: "all", as with callables and torch modules, unless the spec says otherwise.
    """

    takes_words = True  # not known before it is imported: an audit says so where it does not

    def __init__(self, section: OwnSection) -> None:
        self.name = section.name or section.code
        self.answers: CallMode = section.per_call or "all"

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        raise ModelError(f"model {self.name!r}: was not imported, to plan; it cannot be asked")
