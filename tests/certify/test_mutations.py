"""A broken line of the engine is noticed by ``verify``, or by the audit itself."""

import pytest

from .mutations import MUTATIONS, Mutation, audits, mutated, noticed, verify

EVERY = 24
CASES = [
    pytest.param(m, marks=[] if place % EVERY == 0 else pytest.mark.slow, id=m.becomes[-40:])
    for place, m in enumerate(MUTATIONS)
]


@pytest.mark.slow
def test_the_audits_that_are_mutated_verify_without_a_mutation() -> None:
    for audit in audits():
        audit.run()
        verify(audit.journal)


def test_every_line_that_is_to_be_broken_is_there() -> None:
    for mutation in MUTATIONS:
        with mutated(mutation):
            pass


@pytest.mark.parametrize("mutation", CASES)
def test_a_broken_line_is_noticed(mutation: Mutation) -> None:
    assert noticed(mutation)
