"""SPEC.toml: the description of an audit. Every field is described in this package only."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from ..journal.files import JOURNAL
from ..stopping import check_half_width
from ..utils.files import Table, near_file, read_toml
from .audit import AuditSpec, CertifySpec, SpaceSpec, StopSpec
from .datasets import DatasetSpec, DetectorSpec, RegionsSpec
from .models import ModelSpec
from .oracles import OracleSpec, check_judge
from .secrets import refuse_secrets
from .section import Section, described, kinds_of
from .sentences import validated

__all__ = ["DEMO", "Spec", "description", "parse_spec", "read_spec"]


class Spec(Section):
    """A whole SPEC.toml."""

    dataset: DatasetSpec
    model: ModelSpec
    regions: RegionsSpec | None = None
    detector: DetectorSpec | None = None
    space: SpaceSpec = SpaceSpec.model_validate({})
    oracle: OracleSpec | None = None  # by what is known of the images: `proposed`
    audit: AuditSpec = AuditSpec.model_validate({})
    stop: StopSpec = StopSpec.model_validate({})
    certify: CertifySpec = CertifySpec.model_validate({})


DEMO = Spec.model_validate(read_toml(Path(__file__).with_name("demo.toml"), "the demo"))
"""The spec of --demo: the bundled classifier on bundled images."""


def description(place: str) -> str:
    """Return the description of the field SECTION.FIELD, and its default, as a sentence."""
    section, name = place.split(".")
    (kind,) = kinds_of(Spec.model_fields[section].annotation)
    return described(kind, name)


def read_spec(path: Path) -> Spec:
    """Return the spec at ``path``. Raise InputError naming file and field."""
    remedy = "; texts stand in quotes, those with \\ in single ones: 'C:\\images'"
    if path.suffix != ".toml":
        remedy = "; expected a SPEC.toml, as 'avtt init DIR' writes"
    table = read_toml(path, "a SPEC.toml", _instead, remedy)
    return parse_spec(table, str(path))


def _instead(path: Path) -> str:
    """Return a hint for a file that cannot be read."""
    if (path / "SPEC.toml").is_file():
        return f"; did you mean '{path / 'SPEC.toml'}'?"
    named = shlex.quote(str(path))
    if (path / JOURNAL).is_file():
        return f"; it holds an audit: run 'avtt resume {named}' or 'avtt report {named}'"
    if path.is_dir():
        return f"; 'avtt init DIR --data {named}' writes a SPEC.toml for the images in it"
    return near_file(path) or "; 'avtt init DIR' writes one to start from"


def parse_spec(table: Table, where: str, called: Mapping[str, str] | None = None) -> Spec:
    """Return a spec from a table of TOML or JSON.

    Args:
        table: The table.
        where: The file, for messages.
        called: SECTION.FIELD -> the option that set it, for messages.

    Raises:
        InputError: A field is wrong, or contains a secret key, as the text is journaled.
    """
    model = table.get("model")
    if isinstance(model, dict):
        refuse_secrets(model, where)
    oracle = table.get("oracle")
    if isinstance(oracle, dict):
        check_judge(oracle, where)
    spec = validated(Spec, table, where, called)
    if spec.certify.half_width is not None:
        place = (called or {}).get("certify.half_width", f"{where}: certify.half_width")
        check_half_width(spec.certify.half_width, place)
    return spec
