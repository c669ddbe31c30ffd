"""What of a SPEC.toml is other people's code, told without importing any of it."""

from importlib.metadata import packages_distributions, version
from pathlib import Path

from ..datasets import REGISTRY as DATASETS
from ..errors import InputError
from ..models import REGISTRY as MODELS
from ..oracles import REGISTRY as ORACLES
from ..oracles.captions import DETECTORS
from ..relations import REGISTRY as RELATIONS
from ..strategies import REGISTRY as STRATEGIES
from ..surrogates import REGISTRY as SURROGATES
from ..utils.files import hash_file
from ..utils.loading import file_of, is_target
from ..utils.registry import Registry
from . import Spec
from .models import PlugInSection, PythonSection
from .oracles import CaptionOracleSection, WordsSection, is_tagger

JUDGE = "oracle.judge.model"
"""The field that holds a judge."""


def code_parts(spec: Spec) -> dict[str, str]:
    """The parts that a space, its strategy and its surrogate need and that are code: field -> name.

    Models and proxies are not among them: what asks about a space can do without.
    """
    named: list[tuple[str, Registry, str]] = [("dataset.kind", DATASETS, spec.dataset.kind)]
    if spec.detector is not None:
        named.append(("detector.kind", DETECTORS, spec.detector.kind))
    named += [(f"space.relations: {name}", RELATIONS, name) for name in spec.space.relations]
    named += [
        (f"space.transforms: {each.transform}", RELATIONS, each.transform)
        for each in spec.space.transforms or ()
    ]
    named.append(("oracle.kind", ORACLES, spec.oracle.kind))
    if spec.audit.strategy is not None:
        named.append(("audit.strategy", STRATEGIES, spec.audit.strategy))
    if spec.audit.surrogate is not None:
        named.append(("audit.surrogate", SURROGATES, spec.audit.surrogate))
    found = {field: name for field, registry, name in named if registry.is_code(name)}
    if isinstance(spec.oracle, CaptionOracleSection):
        tagger = spec.oracle.tagger
        if tagger is not None and is_tagger(tagger):
            found["oracle.tagger"] = tagger
    if isinstance(spec.oracle, WordsSection) and spec.oracle.judge is not None:
        model = spec.oracle.judge.model
        name = model.target if isinstance(model, PythonSection) else model.kind
        if isinstance(model, PythonSection | PlugInSection):
            found[JUDGE] = name
    return found


def contents(spec: Spec, base: Path) -> dict[str, str | None]:
    """What is known of each part that is code: a hash of its file, or its package and version.

    None where there is neither. Relative files start at ``base``.
    """
    return {field: _content(field, name, base) for field, name in code_parts(spec).items()}


def refuse_code(spec: Spec, where: str, remedy: str) -> None:
    """Raises InputError where the space or the strategy of a spec is code."""
    for field, name in code_parts(spec).items():
        told = field if name in field else f"{field} {name!r}"
        raise InputError(f"{where}: {told} is code, which is not run here; {remedy}")


def _content(field: str, name: str, base: Path) -> str | None:
    if not is_target(name):
        package = _registry(field).package_of(name)
        return None if package is None else " ".join(package)
    file = file_of(name, base)
    if file is not None:
        return hash_file(file) if file.is_file() else None
    top = name.partition(":")[0].partition(".")[0]
    packages = packages_distributions().get(top, [])
    return ", ".join(f"{each} {version(each)}" for each in sorted(set(packages))) or None


def _registry(field: str) -> Registry:
    if field in {"audit.surrogate", JUDGE}:
        return MODELS if field == JUDGE else SURROGATES
    section = field.partition(".")[0]
    known = {"dataset": DATASETS, "detector": DETECTORS, "space": RELATIONS, "audit": STRATEGIES}
    return known.get(section, ORACLES)
