"""Everything that is registered, by kind: the one place from which the suites enumerate."""

from typing import get_args

from adaptive_vtt import relations, strategies, surrogates
from adaptive_vtt.spec import DatasetSpec, ModelSpec, OracleSpec


def names(kind: str) -> set[str]:
    """The names of all that is registered of a kind, "models" for example."""
    return {
        "datasets": lambda: _kinds(DatasetSpec),
        "models": lambda: _kinds(ModelSpec),
        "oracles": lambda: _kinds(OracleSpec),
        "relations": lambda: set(relations.names()),
        "strategies": lambda: set(strategies.names()),
        "surrogates": lambda: (
            {name for name in surrogates.__all__ if "posterior" in vars(vars(surrogates)[name])}
            - {"Surrogate"}
        ),
    }[kind]()


def _kinds(section: type[DatasetSpec | ModelSpec | OracleSpec]) -> set[str]:
    return set(get_args(section.model_fields["kind"].annotation))


def assert_covered(kind: str, cases: dict[str, object]) -> None:
    """Fails where something is registered and has no case, named after it before a comma."""
    missing = names(kind) - {name.partition(",")[0] for name in cases}
    assert not missing, f"give {sorted(missing)} a case in tests/contracts/test_{kind}.py"
