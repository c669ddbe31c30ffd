"""What journals of earlier versions say in names alone. Nothing else reads meaning out of a name.

They called targets by their display names and oracles by their classes, told stopping rules in
words, and gave the law by stakes, by which they certified, the name of the paper's Algorithm 1.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..types import ERROR, SIDES, TargetId

_GROUP = re.compile(r"(?P<group>\S+) (?P<value>.+): error")
_LEVEL = re.compile(r"(mean|max) uncertainty at most ([0-9.e-]+) of its prior")
_CONCEPTS_ARE = {"TopClass": "classes", "Correctness": "labels"}

CERTIFY = "certify"
"""What the law by stakes is called."""
NAMES = 2
"""The fact "names" of journals that call it so; before, there was none."""
_DECIDED = {"at most": "below", None: "open"}
_STAKES = ("uncertainty+unpredictability", "Combined")


def stakes_unnamed(facts: Mapping[str, Any]) -> bool:
    """Whether draws followed the law by stakes under the name of the paper's Algorithm 1."""
    settings = facts.get("settings") or {}
    old = "settings" in facts and "names" not in facts
    return old and bool(facts.get("certificate")) and settings.get("strategy") in _STAKES


def decided_in_todays_words(intervals: Any) -> Any:
    """The rows of targets, with the sides of a limit as they are called now."""
    if not isinstance(intervals, list):
        return intervals
    return [
        {**row, "decided": _DECIDED.get(row["decided"], row["decided"])}
        if isinstance(row, dict) and "decided" in row and isinstance(row["decided"], str | None)
        else row
        for row in intervals
    ]


def concepts_of_oracle(settings: Mapping[str, Any]) -> str:
    """What the concepts of an oracle are, from its class's name."""
    oracle = settings.get("oracle") or {}
    return _CONCEPTS_ARE.get(str(oracle.get("name")), "other")


def stop_levels(rules: Sequence[str]) -> list[tuple[str, float]]:
    """The uncertainties that end an audit, mean or max, as shares of the prior, from its rules in
    words; ``stopping.UncertaintyBelow`` has one."""
    return [(over, float(tau)) for rule in rules for over, tau in _LEVEL.findall(str(rule))]


def target_ids(
    certificate: Mapping[str, Any], space: Mapping[str, Any], settings: Mapping[str, Any]
) -> list[TargetId]:
    """The identities of targets of which a certificate has only the names.

    Names of filters may look like any other; where one does, it is taken for that.
    """
    rates = (settings.get("oracle") or {}).get("rates", SIDES)
    made = _made(space.get("concepts", ()), space.get("variants", ()), rates)
    known = {target.name: target for target in made}
    return [known.get(name) or _other(str(name)) for name in certificate.get("targets", ())]


def _made(
    concepts: Sequence[str], variants: Sequence[tuple[str, int]], rates: Mapping[str, int]
) -> Iterator[TargetId]:
    """Every target that is made without the user's naming it."""
    yield from (TargetId("overall"), TargetId("misclassified"))
    for relation, severity in variants:
        yield TargetId("relation", relation=relation)
        yield TargetId("severity", relation=relation, severity=severity)
    for concept in concepts:
        for rate, side in rates.items():
            yield TargetId("concept", concept, side, rate)
        for relation in dict.fromkeys(relation for relation, _ in variants):
            for rate, about in {ERROR: None, **rates}.items():
                yield TargetId("relation-concept", concept, about, rate, relation)


def _other(name: str) -> TargetId:
    """A value of a metadata column, or a filter."""
    found = _GROUP.fullmatch(name)
    if found is None:
        return TargetId("filter", filter=name)
    return TargetId("group", group=found["group"], value=found["value"])
