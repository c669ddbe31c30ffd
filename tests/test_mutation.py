"""The mutation tester: each fault is what it says, and the books on them are right."""

import ast
from pathlib import Path

import pytest

from adaptive_vtt.experiments import mutation
from adaptive_vtt.experiments.mutation_changes import Mutant, count, mutant

SOURCE = '''"""A docstring with 1 + 1."""
def f(a: int = 3, how: str = "this") -> int:
    """Another, a < b."""
    assert a < 9
    b = a + 1
    if a <= b and not how:
        raise ValueError(f"got {a - 1}")
    self.kept = b
    return b
'''


def changes(source: str) -> list[str]:
    return [mutant("m", source, number).change for number in range(count(source))]


def test_every_kind_of_fault_is_planted_and_texts_are_left_alone() -> None:
    found = changes(SOURCE)
    assert {
        "a + 1 -> a - 1",
        "a <= b -> a < b",
        "a <= b -> a > b",
        "not how -> how",
        "3 -> 4",
        "3 -> 2",
        "a <= b and (not how) -> a <= b or not how",
        "self.kept = b -> pass",
        "return b -> return None",
    } < {*found}
    assert sum("'another'" in change for change in found) == 1  # the default text
    assert not any("9" in change or "docstring" in change for change in found)
    assert "raise ValueError(f'got {a - 1}') -> pass" in found


def test_each_mutant_differs_in_its_line_alone() -> None:
    before = ast.unparse(ast.parse(SOURCE)).splitlines()
    for number in range(count(SOURCE)):
        fault = mutant("m", SOURCE, number)
        after = fault.text.splitlines()
        compile(fault.text, "m", "exec")
        assert len(after) == len(before)
        assert sum(a != b for a, b in zip(after, before, strict=True)) == 1


def test_every_module_of_the_core_has_tests_that_exist() -> None:
    rooms = ("engine", "journal")
    core = {
        f"{r}/{p.stem}" for r in rooms for p in (mutation.ROOT / "adaptive_vtt" / r).glob("*.py")
    }
    nothing_to_break = {"engine/__init__", "journal/__init__", "journal/base", "journal/rows"}
    missing = core - nothing_to_break - {"journal/schema"} - set(mutation.TESTS)
    assert not missing, f"enter them in TESTS of experiments/mutation.py: {sorted(missing)}"
    for module, names in mutation.TESTS.items():
        assert (mutation.ROOT / "adaptive_vtt" / f"{module}.py").is_file()
        for name in names:
            assert (mutation.ROOT / mutation._file(name)).is_file(), name


def test_the_sample_of_a_module_follows_from_the_seed() -> None:
    one = mutation.sample("engine/law", 5, seed=1)
    assert one == mutation.sample("engine/law", 5, seed=1) != mutation.sample("engine/law", 5, 2)
    assert len({m.text for m in one}) == 5


def test_mutants_listed_as_equivalent_are_still_there() -> None:
    for module, line, change in mutation.equivalents():
        source = (mutation.ROOT / "adaptive_vtt" / f"{module}.py").read_text()
        assert line in (text.strip() for text in source.splitlines()), (module, line)
        plain = line.removeprefix("el")
        whole = f"{plain}\n    pass" if plain.startswith("if ") else line
        assert change in changes(whole), (module, change)


def test_equivalent_mutants_count_for_nothing() -> None:
    def tried(verdict: mutation.Verdict) -> mutation.Tried:
        return mutation.Tried(Mutant("m", 1, "a", "b", ""), verdict, 0.0)

    table = [mutation.score("m", [*map(tried, ["killed", "hung", "survived", "equivalent"])])]
    assert mutation.total(table) | {"module": "m"} == table[0]
    assert {**table[0]} == {
        "module": "m",
        "mutants": 3,
        "killed": 2,
        "survived": 1,
        "equivalent": 1,
        "score": "67%",
    }


@pytest.mark.slow
def test_a_fault_that_tests_notice_is_killed_in_a_copy(capfd: pytest.CaptureFixture[str]) -> None:
    source = Path(mutation.ROOT / "adaptive_vtt/engine/law.py").read_text()
    faults = [mutant("engine/law", source, n) for n in range(count(source))]
    chosen = [f for f in faults if f.change == "total <= 0 -> total > 0"]
    assert [t.verdict for t in mutation.run(chosen, jobs=1)] == ["killed"]
    assert "killed    engine/law" in capfd.readouterr().out
    assert (mutation.ROOT / "adaptive_vtt/engine/law.py").read_text() == source
