"""From the [space] section of a SPEC.toml to its relations."""

from pathlib import Path
from typing import Any

from ..datasets import Dataset
from ..errors import InputError
from ..relations import RelationDefaults, make, resolve, transformed
from .audit import MedTestSpec, SpaceSpec

_OPTIONS = {
    "reic": ("follow_ups", "by_ambiguity", "by_diversity", "captions"),
    "rome": ("choices",),
    "metaic": ("cut_outs",),
}
"""Relations that have fields of their own in [space]."""

_LOCATING = ("reduction", "reic", "rome", "metaic")
"""Families whose follow-ups depend on what is located in images."""

_MEDTEST = {"medtest": "segmentation", "medtest/classification": "classification"}
"""Families that take the files of [space.medtest], and the task of each."""


def build_relations(section: SpaceSpec, dataset: Dataset, base: Path) -> list[RelationDefaults]:
    """The relations of a spec, made with its options; relative files start at ``base``.

    Raises InputError for an unknown name, and for an option whose relation is not there.
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
            found += _medtest(section.medtest, _MEDTEST[name], base)
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


def _completed(name: str, options: dict[str, Any], dataset: Dataset, base: Path) -> dict[str, Any]:
    """The options of a relation, with what the dataset and files say in place of their names."""
    if name == "metaic":
        return _with_cut_outs(options, dataset)
    return _with_naming(options, dataset, base) if name == "reic" else options


def _with_naming(options: dict[str, Any], dataset: Dataset, base: Path) -> dict[str, Any]:
    """REIC's options, with the objects that captions in a file name."""
    if "captions" not in options:
        return options
    from ..oracles.captions.recorded import RecordedNaming, source_captions

    samples = [dataset.sample_id(index) for index in range(len(dataset))]
    naming = RecordedNaming(source_captions(base / options.pop("captions"), samples))
    naming.check(dataset)
    return {**options, "naming": naming}


def _with_cut_outs(options: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    """MetaIC's options, with so many cut-outs of each kind taken from the dataset itself."""
    from ..relations.pasting import PER_KIND, cut_outs

    per_kind = options.pop("cut_outs", PER_KIND)
    return {**options, "cut_outs": cut_outs(dataset, per_kind=per_kind)}


def _medtest(section: MedTestSpec, task: str, base: Path) -> list[RelationDefaults]:
    """MedTest's relations with a user's files, which start at ``base``."""
    from ..relations.medtest import from_files

    given = section.given()
    files = {name: base / path for name, path in given.items() if name != "similar"}
    return [*from_files(task, **files, similar=given.get("similar"))]
