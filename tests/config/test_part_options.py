"""What a part can be told is written at its constructor: SPEC.toml follows from it."""

import math
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import pytest

from adaptive_vtt import strategies
from adaptive_vtt.config import Spec, parse_spec
from adaptive_vtt.config.section import kinds_of, shown_default
from adaptive_vtt.errors import InputError
from adaptive_vtt.models import REGISTRY
from adaptive_vtt.models.base import ModelDefaults
from adaptive_vtt.models.network.endpoint import Endpoint
from adaptive_vtt.utils.options import Group, Option, arguments, at_base, check_options, options_of


@dataclass(frozen=True)
class Pauses:
    times: Annotated[int, Option("how often", name="pauses", ge=0)] = 5
    length: Annotated[float, Option("seconds of each", gt=0)] = 1.0
    unsaid: int = 7


class Below(ModelDefaults):
    answers = "all"

    def __init__(
        self,
        *,
        seed: int = 0,
        pauses: Annotated[Pauses | None, Group(Pauses, {"length": 2.0})] = None,
    ) -> None:
        self.seed, self.pauses = seed, pauses or Pauses(length=2.0)

    def ask(self, prompts: Any) -> Any:
        return []


class Provider(Below):
    """A model of a new provider."""

    def __init__(
        self,
        path: Annotated[Path, Option("the file", reads=at_base)],
        *,
        words: Annotated[Sequence[str], Option("what it may say", min_length=1)] = ("yes", "no"),
        inner: int = 3,
        **below: Any,
    ) -> None:
        super().__init__(**below)
        self.path, self.words, self.inner = path, words, inner


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> str:
    """One line of the registry is all there is to enter."""
    monkeypatch.setitem(REGISTRY.built_in, "mine", Provider)
    return "mine"


def spec_of(model: dict[str, Any]) -> Any:
    table = {"dataset": {"kind": "fashion"}, "model": {"kind": "mine", **model}}
    return parse_spec(table, "SPEC.toml").model


def test_a_provider_is_a_class_and_a_line(provider: str, tmp_path: Path) -> None:
    given = {"path": "a/b", "words": ["maybe"], "pauses": 2, "seed": 4}
    model = spec_of(given).build(tmp_path, None, captions=False)
    assert (model.path, model.words, model.inner) == (tmp_path / "a" / "b", ["maybe"], 3)
    assert (model.pauses, model.seed) == (Pauses(2, 2.0), 4)
    plain = spec_of({"path": "a"}).build(tmp_path, None, captions=False)
    assert (plain.words, plain.pauses) == (("yes", "no"), Pauses(5, 2.0))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({}, r"model\.path: expected the file, got nothing; kind 'mine' needs path"),
        ({"path": "a", "wods": []}, r"model: unknown field 'wods'; did you mean 'words'"),
        ({"path": "a", "pauses": -1}, r"pauses: expected greater than or equal to 0, got -1"),
        ({"path": "a", "workers": 2}, r"workers: is no field of kind 'mine'; workers hold"),
        ({"kind": "mien", "path": "a"}, r"model\.kind: unknown value 'mien'; did you mean 'mine'"),
    ],
)
def test_mistakes_are_told_in_the_words_of_the_constructor(
    provider: str, model: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        spec_of(model)


def test_defaults_are_told_and_not_journaled(provider: str) -> None:
    section = type(spec_of({"path": "a"}))
    shown = {name: shown_default(field) for name, field in section.model_fields.items()}
    assert (shown["words"], shown["pauses"], shown["length"]) == (["yes", "no"], 5, 2.0)
    dumped = spec_of({"path": "a", "length": 3.0}).model_dump(exclude_none=True)
    assert dumped == {"kind": "mine", "path": "a", "length": 3.0, "seed": 0}


def test_a_section_goes_to_other_processes() -> None:
    table = {"dataset": {"kind": "masks", "path": "a"}, "model": {"kind": "onnx", "path": "a"}}
    spec = parse_spec(table, "SPEC.toml")
    for section in (spec.dataset, spec.model):
        assert pickle.dumps(section)
        made, table_of = section.__reduce__()
        assert made(*table_of) == section


def test_what_is_none_is_left_to_the_constructor() -> None:
    assert arguments(Provider, {"path": "x", "words": None}, Path("b")) == {"path": Path("b/x")}
    names = [told.name for told in options_of(Provider)]
    assert names == ["path", "words", "pauses", "length"]


def test_every_endpoint_has_limits_retries_and_prices() -> None:
    for kind, found in REGISTRY.built_in.items():
        made = REGISTRY.get(kind)
        if isinstance(made, type) and issubclass(made, Endpoint):
            names = {told.name for told in options_of(made)}
            assert {"in_flight", "retries", "timeout", "price_per_call"} <= names, found


def test_every_option_of_a_built_in_part_is_described() -> None:
    for section, info in Spec.model_fields.items():
        for kind in kinds_of(info.annotation):
            for name, field in kind.model_fields.items():
                assert name == "kind" or field.description, (section, kind.__name__, name)


def test_every_argument_of_a_built_in_strategy_is_an_option() -> None:
    for name in strategies.names():
        made = strategies.REGISTRY.get(name)
        taken = set(signature(made).parameters) if made.__init__ is not object.__init__ else set()
        assert {told.name for told in options_of(made)} == taken, name
        for told in options_of(made):
            check_options(made, {told.name: told.default})


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("bald", {"pwer": 2.0}, r"unknown option 'pwer'; did you mean 'power'\? Expected one of"),
        ("random", {"power": 2.0}, r"expected no options, got 'power'$"),
        ("bald", {"power": "2"}, r"power: expected a number of at least 0, got '2'"),
        ("bald", {"power": math.nan}, r"power: expected a number of at least 0, got nan"),
        ("bald", {"scored": 1.5}, r"scored: expected a whole number of at least 1, got 1\.5"),
        ("neyman", {"stratified": "no"}, r"stratified: expected true or false, got 'no'"),
        ("certify", {"curiosity": -0.1}, r"curiosity: expected .* least 0 and below 1, got -0\.1"),
        ("certify", {"curiosity": 1}, r"curiosity: expected a number .* and below 1, got 1"),
        ("failure-search", {"again": 2}, r"again: expected .* at least 0 and at most 1, got 2"),
    ],
)
def test_options_of_a_strategy_are_checked_by_its_constructor(
    name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=f"^strategy '{name}': {message}"):
        strategies.get(name, **options)
