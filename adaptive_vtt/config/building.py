"""From a SPEC.toml to the dataset, space, model and audit that it describes.

Imports no PyTorch before an audit is built, so that planning one takes no time.
"""

import glob
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .. import surrogates
from ..audit import Audit
from ..audit.proposed import proposed
from ..certify import named_targets
from ..cohort import Cohort
from ..datasets import Dataset
from ..errors import InputError, ModelError
from ..models import ModelDefaults, ModelUnderTest, adapted_model, load
from ..models.local.recorded import RecordedCaptions, recorded
from ..models.versions import version_of
from ..oracles import REGISTRY as ORACLES
from ..relations import REGISTRY as RELATIONS
from ..relations import RelationDefaults, make, reic, resolve, transformed
from ..relations.medtest import from_files
from ..results.gate import Gated
from ..space import QuestionSpace
from ..stopping import FirstOf, StoppingRule
from ..strategies import default, named
from ..types import Answer, CallMode, Prompt, Unanswered
from ..utils.options import arguments, options_of
from . import Spec
from .audit import CertifySpec, SpaceSpec
from .models import ModelSection, OwnSection, Worked
from .oracles import CaptionOracleSection, OracleSection

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
    proxies: dict[str, ModelUnderTest] = {}
    for name, source in (certify.proxies or {}).items():
        if source.endswith(".csv"):
            proxies[name] = recorded(base / source, name=name)
        elif code:
            proxies[name] = load(source, base=base)
    options: dict[str, Any] = {
        **section.model_dump(exclude={"strategy_options", "on_progress"}),
        **certify.model_dump(exclude=CERTIFY_APART),
        "strategy": named(
            section.strategy or default(certify.certifies), section.strategy_options, base
        ),
        "surrogate": _surrogate(certify, base),
        "stop": _stop(spec, space),
        "goal": spec.stop.goal(),
        "proxies": proxies,
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


# -- the space ---------------------------------------------------------------------------------


def build_dataset(spec: Spec, base: Path) -> Dataset:
    """Return what [dataset] and [regions] describe; relative paths start at ``base``."""
    dataset = spec.dataset.build(base)
    return dataset if spec.regions is None else spec.regions.build(dataset)


def build_space(spec: Spec, base: Path, dataset: Dataset | None = None) -> QuestionSpace:
    """Return the question space of a spec; relative paths start at ``base``. ``dataset``: of
    `build_dataset`, where it was built already."""
    dataset = build_dataset(spec, base) if dataset is None else dataset
    if spec.detector is not None:
        _check_detector(spec)
        from ..oracles.captions.detectors import Detected

        dataset = Detected(dataset, spec.detector.build(base))
        dataset.try_out()
    return QuestionSpace(
        dataset,
        build_relations(spec.space, lambda: dataset, base),
        severities=spec.space.severities,
        oracle=oracle_section(spec, dataset).build(base, dataset),
        seed=spec.space.seed,
        without_region=spec.space.without_region,
    )


def oracle_section(spec: Spec, dataset: Dataset) -> OracleSection:
    """Return the spec's [oracle], or the one that suits the dataset where the spec has none.

    Those that compare with the source image are named by the spec alone: [space] has no changes
    unless it names some.
    """
    if spec.oracle is not None:
        return spec.oracle
    suited = proposed(dataset).oracle
    kind = OracleSection.default if ORACLES.get(suited).needs_source else suited
    return OracleSection.of(kind).model_validate({})


def _check_detector(spec: Spec) -> None:
    """Raises InputError for a detector where nothing depends on what is located in images."""
    captions = isinstance(spec.oracle, CaptionOracleSection)
    relations = [name for name in spec.space.relations if RELATIONS.is_code(name) or locates(name)]
    kind = None if spec.oracle is None else spec.oracle.kind
    if not (captions or relations or (kind is not None and ORACLES.is_code(kind))):
        raise InputError(
            f"detector: expected an oracle or a relation that asks where things are, such as "
            f"kind = 'captions' in [oracle] or relations = ['reic'], got oracle "
            f"{kind!r} and relations {spec.space.relations}; leave [detector] out"
        )


_REIC = {option.name for option in options_of(reic.relations)}
"""Options of REIC's relations, which are fields of [space]."""
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
    own = section.model_dump(include=_REIC, exclude_none=True)
    relations, given = section.relations, section.options or {}
    for name in sorted(own if "reic" not in relations else ()):
        raise InputError(f"space.{name}: none of relations {relations} has this option")
    for name in sorted(given.keys() - {*relations}):
        raise InputError(f"space.options: expected some of relations {relations}, got {name!r}")
    if section.medtest is not None and not _MEDTEST.keys() & {*relations}:
        raise InputError(
            f"space.medtest: expected {' or '.join(_MEDTEST)} among relations {relations}"
        )
    found: list[RelationDefaults] = []
    for name in relations:
        if section.medtest is not None and name in _MEDTEST:
            files = arguments(from_files, section.medtest.given(), base)
            found += from_files(_MEDTEST[name], **files)
            continue
        options = {**(own if name == "reic" else {}), **given.get(name, {})}
        if name == "reic" and "captions" in options:
            options["naming"] = _naming(options.pop("captions"), dataset, base)
        found += make(name, options, base)
    found += [transformed(**each.given(), base=base) for each in section.transforms or ()]
    return resolve(found)


def _naming(captions: str, dataset_of: Callable[[], Dataset], base: Path) -> Any:
    """Return what names the objects of source images: the model itself, or a table of captions."""
    from ..oracles.captions.recorded import OwnNaming, RecordedNaming, source_captions

    if captions == reic.OWN:
        return OwnNaming()
    dataset = dataset_of()
    samples = [dataset.sample_id(index) for index in range(len(dataset))]
    naming = RecordedNaming(source_captions(base / captions, samples))
    naming.check(dataset)
    return naming


def locates(name: str) -> bool:
    """Whether a relation's follow-ups depend on what is located in images."""
    return name.partition("/")[0] in _LOCATING


# -- the model ---------------------------------------------------------------------------------


def build_model(spec: Spec, base: Path, dataset: Dataset) -> ModelDefaults:
    """The model of a spec, with its version; relative paths start at ``base``."""
    captions = isinstance(spec.oracle, CaptionOracleSection)
    section = _section(spec, dataset)
    worked = section.worked(base) if isinstance(section, Worked) else None
    model = adapted_model(worked or section.build(base, dataset, captions=captions))
    version = spec.model.version
    if version is None:
        code = base / (spec.model.file() or "")
        version = version_of(model, code, spec.model.files(base))
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


def _section(spec: Spec, dataset: Dataset) -> ModelSection:
    """The model's section, its logits those of classes where the oracle judges those."""
    section = spec.model
    if not isinstance(section, OwnSection) or section.output != "logits":
        return section
    classes = oracle_section(spec, dataset).kind in ("top-class", "ordinal")
    return section.model_copy(update={"output": "class-logits"}) if classes else section


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
