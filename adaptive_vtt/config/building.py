"""Builder of the dataset, space, model and audit that a SPEC.toml describes.

Imports no PyTorch before an audit is built, so that planning one takes no time.
"""

import glob
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..audit import Audit
from ..audit.proposed import proposed
from ..certify import named_targets
from ..cohort import Cohort
from ..datasets import Dataset
from ..errors import InputError, ModelError, unexpected
from ..models import ModelDefaults, ModelUnderTest, adapted_model, load
from ..models.local.recorded import RecordedCaptions, recorded
from ..models.versions import version_of
from ..oracles import REGISTRY as ORACLES
from ..relations import REGISTRY as RELATIONS
from ..relations import RelationDefaults, make, reic, resolve, transformed
from ..relations.medtest import from_files
from ..results.gate import Gated
from ..space import QuestionSpace
from ..stopping import FirstOf
from ..strategies import default, named
from ..surrogates import QUESTION_GP
from ..surrogates import named as named_surrogate
from ..types import Answer, CallMode, Prompt, Unanswered
from ..utils.options import arguments, options_of
from . import Spec
from .audit import SpaceSpec
from .models import OwnSection, Worked
from .oracles import CaptionOracleSection, OracleSection

CERTIFY_APART = {"proxies", "prior_journal", "cohort", "features", "surrogate_options"}
"""Fields of [certify] that are not options of an audit as they are."""


def build_audit(
    spec: Spec,
    base: Path,
    *,
    check: Callable[[QuestionSpace], None] | None = None,
    space: QuestionSpace | None = None,
    model: ModelUnderTest | None = None,
    **options: Any,
) -> Audit:
    """Return the audit of a spec.

    Args:
        spec: The spec.
        base: The folder that its paths start at.
        check: Called with the space before the code of model, proxies and strategy is imported.
        space: The space, if it was built already.
        model: The model, if it was built already.
        options: Options of ``Audit`` that replace the spec's. ``strategy_options`` are added to
            those of the spec if the strategy is the same.
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
    """Return the space, the model and all other arguments of a spec's audit.

    ``space``, ``model``: if they were built already. Models and proxies that are code are imported
    last, and with ``code`` False not at all: such proxies are left out, and a `NotImported`
    replaces such a model.
    """
    space = build_space(spec, base) if space is None else space
    section, certify, stop, prior = spec.audit, spec.certify, spec.stop.limit(), None
    if certify.features != "default":
        from ..surrogates import embed  # imports PyTorch

        space.dataset.features = embed(space.dataset, device=section.device)
    proxies: dict[str, ModelUnderTest] = {}
    for name, source in (certify.proxies or {}).items():
        if source.endswith(".csv"):
            proxies[name] = recorded(base / source, name=name)
        elif code:
            proxies[name] = load(source, base=base)
    if spec.stop.gate is not None:
        if not certify.certifies:
            raise unexpected(
                "stop.gate",
                "an audit that certifies",
                "neither certify.half_width nor certify.at_most",
                "give the narrowest interval that you would wait for, such as half_width = 0.02",
            )
        targets = named_targets(space, certify.targets, certify.where)
        gated = Gated.of(spec.stop.gate, [target.id for target in targets])
        stop = gated if stop is None else FirstOf((stop, gated))
    own, surrogate = certify.surrogate_options, certify.surrogate
    if own and surrogate is False:
        expected, got = "a surrogate that takes them", "surrogate = false"
        raise unexpected("certify.surrogate_options", expected, got, "leave them out")
    if own or isinstance(surrogate, str):
        kind = surrogate if isinstance(surrogate, str) else QUESTION_GP
        surrogate = named_surrogate(kind, own, base)
    strategy = section.strategy or default(certify.certifies)
    if certify.prior_journal:
        prior = base / certify.prior_journal
    options: dict[str, Any] = {
        **section.model_dump(exclude={"strategy_options", "on_progress"}),
        **certify.model_dump(exclude=CERTIFY_APART),
        "strategy": named(strategy, section.strategy_options, base),
        "surrogate": surrogate,
        "stop": stop,
        "goal": spec.stop.goal(),
        "proxies": proxies,
        "prior_journal": prior,
        "cohort": _cohort(certify.cohort, base),
    }
    model = model_of(spec, base, space, code=code) if model is None else model
    return space, model, options


def _cohort(runs: str | list[str] | None, base: Path) -> Cohort | None:
    if runs is None:
        return None
    inside = glob.escape(str(base)) if base != Path() else ""
    patterns = [runs] if isinstance(runs, str) else runs
    return Cohort.from_runs(*(Path(inside if glob.has_magic(r) else base, r) for r in patterns))


# -- the space ---------------------------------------------------------------------------------


def build_dataset(spec: Spec, base: Path) -> Dataset:
    """Return the dataset of [dataset] and [regions]; relative paths start at ``base``."""
    dataset = spec.dataset.build(base)
    return dataset if spec.regions is None else spec.regions.build(dataset)


def build_space(spec: Spec, base: Path, dataset: Dataset | None = None) -> QuestionSpace:
    """Return the question space of a spec; relative paths start at ``base``. ``dataset``: that of
    `build_dataset`, if it was built already."""
    dataset = build_dataset(spec, base) if dataset is None else dataset
    if spec.detector is not None:
        _check_detector(spec)
        from ..oracles.captions.detectors import Detected

        dataset = Detected(dataset, spec.detector.build(base))
        dataset.try_out()
    space = QuestionSpace(
        dataset,
        build_relations(spec.space, lambda: dataset, base),
        severities=spec.space.severities,
        oracle=oracle_section(spec, dataset).build(base, dataset),
        seed=spec.space.seed,
        without_region=spec.space.without_region,
    )
    return space.for_targets(spec.certify.targets)


def oracle_section(spec: Spec, dataset: Dataset) -> OracleSection:
    """Return the spec's [oracle], or one that suits the dataset if the spec has none.

    An oracle that compares with the source image is used only if the spec names it: without
    relations in [space] there is nothing to compare.
    """
    if spec.oracle is not None:
        return spec.oracle
    suited = proposed(dataset).oracle
    kind = OracleSection.default if ORACLES.get(suited).needs_source else suited
    return OracleSection.of(kind).model_validate({})


def _check_detector(spec: Spec) -> None:
    """Raise InputError for a detector that neither the oracle nor a relation uses."""
    kind, relations = None if spec.oracle is None else spec.oracle.kind, spec.space.relations
    used = isinstance(spec.oracle, CaptionOracleSection) or (kind and ORACLES.is_code(kind))
    if not (used or any(RELATIONS.is_code(name) or locates(name) for name in relations)):
        raise unexpected(
            "detector",
            "an oracle or a relation that asks where things are, such as kind = 'captions' in "
            "[oracle] or relations = ['reic']",
            f"oracle {kind!r} and relations {relations}",
            "leave [detector] out",
        )


_REIC = {option.name for option in options_of(reic.relations)}
"""Options of REIC's relations, which are fields of [space]."""
_LOCATING = ("reduction", "reic")
"""Families whose follow-ups depend on where objects are."""
_MEDTEST = {"medtest": "segmentation", "medtest/classification": "classification"}
"""Families that take the files of [space.medtest], and the task of each."""


def build_relations(
    section: SpaceSpec, dataset: Callable[[], Dataset], base: Path
) -> list[RelationDefaults]:
    """Return the relations of a spec, made with its options; relative files start at ``base``.

    ``dataset`` is called for relations that depend on all samples. Raises InputError for an
    unknown name, and for an option whose relation is missing.
    """
    own = section.model_dump(include=_REIC, exclude_none=True)
    relations, given = section.relations, section.options or {}
    for name in sorted(own if "reic" not in relations else ()):
        raise InputError(f"space.{name}: none of relations {relations} has this option")
    for name in sorted(given.keys() - {*relations}):
        raise unexpected("space.options", f"some of relations {relations}", repr(name))
    if section.medtest is not None and not _MEDTEST.keys() & {*relations}:
        expected = f"{' or '.join(_MEDTEST)} among relations"
        raise unexpected("space.medtest", expected, relations)
    made: list[RelationDefaults] = []
    for name in relations:
        if section.medtest is not None and name in _MEDTEST:
            files = arguments(from_files, section.medtest.given(), base)
            made += from_files(_MEDTEST[name], **files)
            continue
        options = {**(own if name == "reic" else {}), **given.get(name, {})}
        if name == "reic" and "captions" in options:
            options["naming"] = _naming(options.pop("captions"), dataset, base)
        made += make(name, options, base)
    made += [transformed(**each.given(), base=base) for each in section.transforms or ()]
    return resolve(made)


def _naming(captions: str, dataset_of: Callable[[], Dataset], base: Path) -> Any:
    """Return the source of the names of objects: the model itself, or a table of captions."""
    from ..oracles.captions.recorded import OwnNaming, RecordedNaming, source_captions

    if captions == reic.OWN:
        return OwnNaming()
    dataset = dataset_of()
    samples = [dataset.sample_id(index) for index in range(len(dataset))]
    naming = RecordedNaming(source_captions(base / captions, samples))
    naming.check(dataset)
    return naming


def locates(name: str) -> bool:
    """Return whether a relation's follow-ups depend on where objects are."""
    return name.partition("/")[0] in _LOCATING


# -- the model ---------------------------------------------------------------------------------


def build_model(spec: Spec, base: Path, dataset: Dataset) -> ModelDefaults:
    """Return the model of a spec, with its version; relative paths start at ``base``."""
    section, captions = spec.model, isinstance(spec.oracle, CaptionOracleSection)
    logits = isinstance(section, OwnSection) and section.output == "logits"
    if logits and oracle_section(spec, dataset).kind in ("top-class", "ordinal"):
        section = section.model_copy(update={"output": "class-logits"})
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
    """Return the model, checked against the space. If it is code and ``code`` is False, return a
    `NotImported`."""
    if isinstance(spec.model, OwnSection) and not code:
        return NotImported(spec.model)
    model = build_model(spec if code else unworked(spec), base, space.dataset)
    if isinstance(model, RecordedCaptions):
        model.check(space.dataset, space.variants)
    return model


def unworked(spec: Spec) -> Spec:
    """Return the spec without workers of the model."""
    if not isinstance(spec.model, Worked):
        return spec
    return spec.model_copy(update={"model": spec.model.unworked()})


class NotImported(ModelDefaults):
    """Stand-in for a model of code that is not imported, with what the spec says about it.

    ``answers``: "all", as with callables and torch modules, unless the spec has per_call.
    """

    takes_words = True  # not known yet; an audit raises an error if the model takes none

    def __init__(self, section: OwnSection) -> None:
        self.name = section.name or section.code
        self.answers: CallMode = section.per_call or "all"

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        raise ModelError(f"model {self.name!r}: was not imported for a plan; it cannot be asked")
