"""Everything that is registered, by kind: the one place from which the suites enumerate."""

from adaptive_vtt import datasets, models, oracles, relations, strategies, surrogates

ROOMS = {
    "datasets": datasets,
    "models": models,
    "oracles": oracles,
    "relations": relations,
    "strategies": strategies,
    "surrogates": surrogates,
}


def names(kind: str) -> set[str]:
    """The built-in names of a kind, "models" for example; of relations those in families, too."""
    return set(relations.names() if kind == "relations" else ROOMS[kind].REGISTRY.built_in)


def assert_covered(kind: str, cases: dict[str, object]) -> None:
    """Fails where something is registered and has no case, named after it before a comma."""
    missing = names(kind) - {name.partition(",")[0] for name in cases}
    assert not missing, f"give {sorted(missing)} a case in tests/contracts/test_{kind}.py"
