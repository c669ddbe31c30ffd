"""The options of an audit, in groups and as keywords: the same audit, and one place for each."""

import re
from dataclasses import fields
from typing import Annotated, Any, ForwardRef, get_args, get_origin

import pytest

from adaptive_vtt import Audit, Certify, Limits, QuestionSpace, Sampling, strategies
from adaptive_vtt.engine.options import Shorthands, grouped
from adaptive_vtt.errors import InputError
from adaptive_vtt.surrogates import Named as NamedSurrogate
from adaptive_vtt.testing import ScriptedModel
from tests.helpers.audits import content

GROUPS = (Certify, Sampling, Limits)
BALD = strategies.get("bald")


def test_groups_and_keywords_make_the_same_audit(space: QuestionSpace) -> None:
    grouped_audit = Audit(
        space,
        ScriptedModel(),
        certify=Certify(half_width=0.3, targets=("overall",), surrogate=False),
        sampling=Sampling(strategy="random", seed=4, exploration=0.5),
        limits=Limits(budget=15),
    )
    keywords: dict[str, Any] = {"half_width": 0.3, "targets": ("overall",), "surrogate": False}
    options = {**keywords, "strategy": "random", "seed": 4, "exploration": 0.5, "budget": 15}
    plain = Audit(space, ScriptedModel(), **options)
    grouped_audit.run()
    plain.run()
    assert content(grouped_audit.journal) == content(plain.journal)
    for group, audit in (("certify", plain), ("sampling", plain), ("limits", plain)):
        assert getattr(audit, group) == getattr(grouped_audit, group)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limits": Limits(), "budget": 5}, "write limits = Limits(..., budget = 5)"),
        ({"budgt": 5}, "audit: unknown option 'budgt'; did you mean 'budget'? Expected one of"),
        ({"strategy": BALD, "strategy_options": {"power": 2}}, "expected a name, got Bald made"),
        ({"sampling": "random"}, "sampling: expected a Sampling, got 'random' of type str"),
    ],
)
def test_options_twice_or_unknown_are_refused(space: QuestionSpace, options: Any, message: str):
    with pytest.raises(InputError, match=re.escape(message)):
        Audit(space, ScriptedModel(), **options)


def test_every_field_of_a_group_is_a_keyword_of_the_same_type_and_described() -> None:
    own = {f.name: kind for kind in GROUPS for f in fields(kind)}
    assert len(own) == sum(len(fields(kind)) for kind in GROUPS)  # no name in two groups
    assert set(Shorthands.__annotations__) == set(own)
    for name, kind in own.items():
        written = kind.__annotations__[name]
        if get_origin(written) is Annotated:
            written, option = get_args(written)
            assert option.about
        else:  # is for Python alone, and on a line of its own
            lines = [x for x in (kind.__doc__ or "").split("\n    - ") if f"``{name}``:" in x]
            assert len(lines) == 1
            assert "Default" in lines[0]
        if isinstance(written, ForwardRef):  # names a class that is imported there for types alone
            written = eval(written.__forward_arg__, {"NamedSurrogate": NamedSurrogate})
        assert str(written) == str(_plain(Shorthands.__annotations__[name]))


def _plain(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def test_defaults_are_those_of_the_groups() -> None:
    assert grouped({}, None, None, None) == (Certify(), Sampling(), Limits())
