"""Realism of changed pictures: which pairs are shown, and what answers come to."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.errors import InputError
from adaptive_vtt.journal import Journal, MemoryJournal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.people.cards import Pictures
from adaptive_vtt.people.realism import REALISTIC, SAME, pairs, pairs_in_turn, summarise
from adaptive_vtt.results.report import page
from adaptive_vtt.results.report.run_files import (
    REALISM,
    Cell,
    Realism,
    realism_of,
    realism_table,
    write,
)
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from tests.helpers.labelled_audit import answers

SPACE = QuestionSpace(
    tiny_dataset(40, 2), ["identity", "gaussian_noise", "brightness_up", "rotation"]
)


@pytest.fixture(scope="module")
def asked() -> Journal:
    journal = MemoryJournal()
    options: Any = {"budget": 150, "seed": 3, "surrogate": False}
    with Audit(SPACE, ScriptedModel(), journal=journal, **options) as audit:
        audit.run()
    return journal


def test_pairs_are_shown_evenly_over_relations_and_severities_and_alike_to_all(asked: Journal):
    change, pictures = {card.id: change for card, change in pairs(asked)}, Pictures(asked, SPACE)
    shown = pairs_in_turn(asked, 45, pictures)
    assert shown == pairs_in_turn(asked, 45, pictures)
    assert len({card.id for card in shown}) == 45
    relations = Counter(change[card.id][0] for card in shown)
    assert set(relations) == {"gaussian_noise", "brightness_up", "rotation"}  # no source itself
    assert set(relations.values()) == {15}
    assert set(Counter(change[card.id] for card in shown).values()) == {3}
    assert pairs_in_turn(asked, 9, pictures) == shown[:9]
    assert {c.call for c in shown} <= {d.call for d in asked.draws(proposals=False)}
    kept = asked.pictures()
    assert {c.call for c in pairs_in_turn(asked, None, Pictures(asked))} <= set(kept)
    with pytest.raises(InputError, match="expected 1 or more pairs, got 0"):
        pairs_in_turn(asked, 0, pictures)


def test_a_pair_counts_where_most_say_yes_and_a_tie_does_not(asked: Journal):
    cards = pairs_in_turn(asked, 3, Pictures(asked, SPACE))
    given = {
        "ann": [("yes", "yes"), ("yes", "unsure"), ("no", "no")],
        "bob": [("yes", "yes"), ("no", "yes"), ("yes", "no")],
        "eve": [("no", "yes"), ("no", "yes")],
    }
    rows = [
        (card.id, question, reader, answer)
        for reader, both in given.items()
        for card, pair in zip(cards, both, strict=False)
        for question, answer in zip((REALISTIC, SAME), pair, strict=True)
    ]
    judged = summarise(asked, answers(rows)).realism
    assert judged is not None
    assert judged.readers == {"ann": 3, "bob": 3, "eve": 2}
    assert sum(cell.realistic[0] for cell in judged.cells) == 1  # the third is divided
    assert sum(cell.realistic[1] for cell in judged.cells) == 3
    assert sum(cell.same[0] for cell in judged.cells) == 2
    # two pairs that all judged, yes 2 of 3 and no 2 of 3: agreement 1/3, by chance 1/2
    assert judged.kappa[REALISTIC] == (pytest.approx((1 / 3 - 1 / 2) / (1 / 2)), 2)
    last = realism_table(judged).iloc[-1]
    assert last[["relation", "realistic", "pairs"]].tolist() == ["all", "33.3\u202f%", 3]


@pytest.mark.slow
def test_a_report_tells_realism_of_its_own_audit_alone(asked: Journal, tmp_path: Path):
    facts, card = read_facts(asked.facts()), pairs(asked)[0][0]
    rows = answers([(card.id, question, "<b>ann", "yes") for question in (REALISTIC, SAME)])
    judged = summarise(asked, rows).realism
    assert judged is not None
    write(judged, tmp_path)
    html = page.render(asked, tmp_path)
    assert 'id="realism"' in html
    assert "&lt;b&gt;ann" in html
    assert "<b>ann" not in html
    assert 'id="realism"' not in page.render(asked)
    for spoilt in (
        judged.model_copy(update={"audit": "another"}).model_dump_json(),
        '{"audit": 1}',
        json.dumps({**judged.model_dump(), "more": 1}),
        "[" * 100_000,
        judged.model_dump_json().replace("[1,1]", "[-1,1]"),
    ):
        (tmp_path / REALISM).write_text(spoilt)
        assert realism_of(tmp_path, facts) is None


def test_the_least_realistic_stand_first_and_those_nobody_judged_last():
    shares = {"blur": (9, 10), "crop": (0, 0), "noise": (1, 10)}
    cells = [Cell(relation=r, severity=1, realistic=s, same=(1, 1)) for r, s in shares.items()]
    rows = realism_table(Realism(audit="", readers={}, cells=cells, kappa={}))
    assert rows["relation"].tolist() == ["noise", "blur", "crop", "all"]
    assert rows["realistic"][2] == "–"
