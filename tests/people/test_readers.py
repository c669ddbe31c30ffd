"""People as readers: what they are shown, what they may answer, and what follows from it."""

import io
import json
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.audit.census import all_losses, means
from adaptive_vtt.certify import named_targets
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.datasets import from_table
from adaptive_vtt.datasets.formats.endobench import from_endobench
from adaptive_vtt.errors import InputError
from adaptive_vtt.journal import Journal, MemoryJournal, read_journal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.oracles import Consistency, MultipleChoice, TopClass
from adaptive_vtt.people import realism
from adaptive_vtt.people.answers import (
    Answers,
    Given,
    check_known,
    keep,
    later,
    read_file,
    read_folder,
)
from adaptive_vtt.people.cards import UNSURE, Asked, Card, Picture, Pictures, known, yes_or_no
from adaptive_vtt.people.realism import QUESTIONS, REALISTIC, SAME, pairs, summarise
from adaptive_vtt.people.sessions import Session, keys, run, write_page
from adaptive_vtt.people.study import (
    CLASS,
    Person,
    Study,
    audited,
    before_the_gap,
    compared,
    read_by_all,
)
from adaptive_vtt.results.report import page
from adaptive_vtt.results.report.beside_journal import REALISM, said_by_people
from adaptive_vtt.results.report.beside_journal import write as write_beside
from adaptive_vtt.results.report.people import realism_rows
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Answer, Unanswered
from tests.audit.test_versus import TRUTHS, Skilled, space
from tests.helpers.endobench_rows import row, write

NOON = datetime(2024, 5, 31, 12, tzinfo=UTC)
TERMS = {"half_width": 0.05, "targets": ["overall", "relations"], "surrogate": False}
AUDITED: dict[str, Any] = {**TERMS, "candidates": 32, "self_taught": False, "seed": 9}


def said(card: int, question: str, answer: str, reader: str = "ann", minutes: int = 0) -> Given:
    return Given(card, question, reader, answer, NOON + timedelta(minutes=minutes))


def by_key(given: list[Given]) -> Answers:
    return {one.key: one for one in given}


def audited_model(path: Any = None, budget: int = 30, **options: Any) -> Journal:
    """The journal of a model's audit that readers are asked after."""
    journal = MemoryJournal() if path is None else None
    chosen = {**AUDITED, "budget": budget, **options}
    with Audit(space(), Skilled("old", 0.6), journal=journal or path, **chosen) as audit:
        audit.run()
    return journal if journal is not None else read_journal(path)


def answers(cards: list[Card], right: float, reader: str = "ann", seed: int = 0) -> Answers:
    """A reader who is right about that share of questions; which is fixed by question alone."""
    found = []
    for card in cards:
        for one in card.asked:
            sample = f"s{card.number // 6}"  # 6 follow-ups of each image
            truth = TRUTHS[sample, one.id]
            lucky = np.random.default_rng([seed, card.number, ord(one.id[-1])]).random() < right
            says = "yes" if (truth == 1) == lucky else "no"
            found.append(said(card.number, one.id, says, reader))
    return by_key(found)


# -- realism -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def asked() -> Journal:
    questions = QuestionSpace(
        tiny_dataset(40, 2), ["identity", "gaussian_noise", "brightness_up", "rotation"]
    )
    journal = MemoryJournal()
    with Audit(questions, ScriptedModel(), journal=journal, budget=150, seed=3) as audit:
        audit.run()
    return journal


def test_pairs_are_shown_evenly_over_relations_and_severities_and_alike_to_all(asked: Journal):
    change = {card.number: change for card, change in pairs(asked)}
    shown = realism.cards(asked, 45)
    assert shown == realism.cards(asked, 45)
    assert len({card.number for card in shown}) == 45
    relations = Counter(change[card.number][0] for card in shown)
    assert set(relations) == {"gaussian_noise", "brightness_up", "rotation"}  # no source itself
    assert set(relations.values()) == {15}
    assert set(Counter(change[card.number] for card in shown).values()) == {3}
    assert [c.number for c in realism.cards(asked, 9)] == [c.number for c in shown[:9]]
    assert len(realism.cards(asked, None)) == len(change)
    odd = realism.cards(asked, None, lambda card: card.number % 2)
    assert {card.number % 2 for card in odd} == {1}
    with pytest.raises(InputError, match="expected 1 or more pairs, got 0"):
        realism.cards(asked, 0)


def test_a_pair_counts_where_most_say_yes_and_a_tie_does_not(asked: Journal):
    cards = realism.cards(asked, 3)
    given = {
        "ann": [("yes", "yes"), ("yes", "unsure"), ("no", "no")],
        "bob": [("yes", "yes"), ("no", "yes"), ("yes", "no")],
        "eve": [("no", "yes"), ("no", "yes")],
    }
    readers = {
        name: by_key(
            [
                said(card.number, q, answer, name)
                for card, both in zip(cards, answers, strict=False)
                for q, answer in zip((REALISTIC, SAME), both, strict=True)
            ]
        )
        for name, answers in given.items()
    }
    found = summarise(asked, readers)
    assert found.readers == {"ann": 3, "bob": 3, "eve": 2}
    assert sum(cell.realistic[0] for cell in found.cells) == 1  # the third is divided
    assert sum(cell.realistic[1] for cell in found.cells) == 3
    assert sum(cell.same[0] for cell in found.cells) == 2
    # two pairs that all judged, yes 2 of 3 and no 2 of 3: agreement 1/3, by chance 1/2
    assert found.kappa[REALISTIC] == (pytest.approx((1 / 3 - 1 / 2) / (1 / 2)), 2)
    last = realism_rows(found)[-1]
    assert (last.name, last.realistic.split("\u202f")[0], last.pairs) == ("all", "33.3", 3)


@pytest.mark.slow
def test_a_report_tells_realism_of_its_own_audit_alone(asked: Journal, tmp_path: Path):
    facts = read_facts(asked.facts())
    card = realism.cards(asked, 1)[0]
    found = summarise(
        asked, {"<b>ann": by_key([said(card.number, q.id, "yes") for q in QUESTIONS])}
    )
    write_beside(found, tmp_path)
    html = page.render(asked, tmp_path)
    assert 'id="realism"' in html
    assert "&lt;b&gt;ann" in html
    assert "<b>ann" not in html
    assert 'id="realism"' not in page.render(asked)
    for spoilt in (
        found.model_copy(update={"audit": "another"}).model_dump_json(),
        '{"audit": 1}',
        json.dumps({**found.model_dump(), "more": 1}),
        "[" * 100_000,
        found.model_dump_json().replace("[1,1]", "[-1,1]"),
    ):
        (tmp_path / REALISM).write_text(spoilt)
        assert said_by_people(tmp_path, facts).realism is None


# -- answers on disk -----------------------------------------------------------------------------


def test_answers_are_kept_by_reader_and_words_are_no_formulas(tmp_path: Path):
    first = [said(1, "c0", "=1+1"), said(1, "c1", 'a "b",\nc'), said(2, "c0", "no", "bob")]
    keep(tmp_path, first)
    assert "'=1+1" in (tmp_path / "ann.csv").read_text()
    newer = said(1, "c0", "two", minutes=5)
    assert later(tmp_path, [newer, said(1, "c1", "older", minutes=-1)]) == [newer]
    keep(tmp_path, [newer])
    found = read_folder(tmp_path)
    assert {k: v.answer for k, v in found["ann"].items()} == {
        (1, "c0"): "two",
        (1, "c1"): 'a "b",\nc',
    }
    assert list(found) == ["ann", "bob"]


HEAD = "card,question,reader,answer,time\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "row 1: expected card,question,reader,answer,time, got an empty file"),
        (HEAD + "1,c,ann,yes\n", "row 2: expected 5 fields, got 4"),
        (HEAD + "-1,c,ann,yes,2024-05-31T12:00:00Z\n", "card: expected its number, got '-1'"),
        (HEAD + "1,c,../a,yes,2024-05-31T12:00:00Z\n", "reader: expected a name of up to 60"),
        (HEAD + "1,c,ann,,2024-05-31T12:00:00Z\n", "answer: expected 1 to 2000 characters, got 0"),
        (HEAD + "1,c,ann,yes,noon\n", "time: expected one as 2024-05-31T12:00:00Z"),
    ],
)
def test_a_bad_file_is_one_sentence(tmp_path: Path, text: str, message: str):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(InputError, match=re.escape(message)):
        read_file(tmp_path / "x.csv")


def test_only_what_was_asked_may_be_answered_and_only_by_a_choice():
    cards = known([Card(1, 1, 1, (), (yes_or_no("c0", "?"), Asked("free", "?", {})))])
    check_known([said(1, "c0", "unsure"), said(1, "free", "a polyp")], cards, "x")
    with pytest.raises(InputError, match="x: card 2 of this audit has no question 'c0'; is the"):
        check_known([said(2, "c0", "yes")], cards, "x")
    with pytest.raises(InputError, match="card 1, 'c0': expected yes, no or unsure, got 'maybe'"):
        check_known([said(1, "c0", "maybe")], cards, "x")


# -- forms ---------------------------------------------------------------------------------------

NASTY = '</script><b>"cup"</b>'


def test_the_page_holds_everything_and_gives_nothing_away(tmp_path: Path):
    card = Card(7, 7, 7, ("picture",), (Asked("task", NASTY, {"A": "polyp", "B": "ulcer"}),))
    picture = Picture(b"bytes", "png")
    session = Session(
        [card, card], "ann", by_key([said(7, "task", "B")]), "Questions", "", "--questions"
    )
    write_page(tmp_path / "p.html", session, lambda card: [picture], {"audit": 1})
    html = (tmp_path / "p.html").read_text()
    assert NASTY not in html
    assert html.count(picture.address) == 1  # each picture once
    text = re.search(r'id="form-data">(.*?)</script>', html, re.S)
    assert text is not None
    content = json.loads(text[1])
    assert content["cards"][0]["asked"] == [
        {
            "id": "task",
            "text": NASTY,
            "choices": [["A", "polyp"], ["B", "ulcer"]],
            "unsure": True,
            "suggested": None,
        }
    ]
    assert content["answers"] == [[7, "task", "B", NOON.isoformat()]]
    told = {name: value for name, value in content["cards"][0].items() if value}
    assert set(told) == {"number", "titles", "pictures", "asked", "size"}


def test_the_terminal_asks_what_is_left_and_saves_each_answer(tmp_path: Path):
    free = Card(2, 2, 2, (), (Asked("why", "Why?", {}),))
    cards = [Card(1, 1, 1, ("first",), QUESTIONS), free]
    session = Session(cards, "ann", by_key([said(1, REALISTIC, "no")]), "", "", "")
    pressed, kept, shown = iter("xuq"), [], Console(file=io.StringIO(), width=80)
    run(session, lambda c: [], kept.append, lambda: next(pressed), shown, lambda: "a tool")
    assert [(g.card, g.question, g.answer) for g in kept] == [
        (1, SAME, "unsure"),
        (2, "why", "a tool"),
    ]
    text = shown.file.getvalue()  # type: ignore[attr-defined]
    assert "no such answer here" in text
    assert "3 of 3 answered; nothing is left" in text
    assert keys(Asked("task", "", {"A": "x", "B": "y"})) == {"a": "A", "b": "B", "u": "unsure"}


def test_readers_see_fine_pictures(asked: Journal):
    questions = QuestionSpace(
        tiny_dataset(40, 2), ["identity", "gaussian_noise", "brightness_up", "rotation"]
    )
    card = realism.cards(asked, 1)[0]
    coarse, fine = (Pictures(asked, questions, fine=f).of(card) for f in (False, True))
    assert coarse is not None
    assert fine is not None
    assert [p.ending for p in (*coarse, *fine)] == ["jpeg", "jpeg", "png", "png"]


# -- the same questions --------------------------------------------------------------------------


def test_questions_come_in_the_order_of_the_draws_and_end_at_the_first_gap():
    journal = audited_model(budget=12)
    study = Study(journal, space())
    cards = list(study.cards())
    assert [c.call for c in cards] == [d.call for d in journal.draws()]
    assert study.known() == known(cards)
    assert len(list(study.cards(5))) == 5
    own = answers(cards, 0.9)
    own[cards[4].all[0]] = said(*cards[4].all[0], "unsure")
    answered, count = before_the_gap(study, cards, own)
    assert (len(answered), count) == (12, 12)
    assert answered[4][1].values[0] == Unanswered("the reader cannot tell")
    assert study.losses(*answered[4])[0] == 1.0
    del own[cards[7].all[-1]]
    answered, count = before_the_gap(study, cards, own)
    assert (len(answered), count) == (7, 11)


@pytest.mark.slow
def test_a_reader_who_says_what_the_model_said_is_no_different_from_it(tmp_path: Path):
    path = tmp_path / "journal.db"
    journal = audited_model(path, budget=25)
    study = Study(journal, space())
    cards, calls = list(study.cards()), {c.call: c for c in journal.calls()}
    same = []
    for card in cards:
        told = sorted(calls[card.call].answers, key=lambda a: a.question)
        for one, answer in zip(card.asked, told, strict=True):
            same.append(said(card.number, one.id, "yes" if answer.answer else "no"))
    person = Person("ann", study, before_the_gap(study, cards, by_key(same))[0])
    result = audited(study, person, TERMS, 25, tmp_path / "ann")
    then, now = journal.draws(), read_journal(tmp_path / "ann" / "journal.db").draws()
    assert [(d.question, d.proposal) for d in now] == [(d.question, d.proposal) for d in then]
    assert result.calls == 25
    verify(read_journal(tmp_path / "ann" / "journal.db"))
    assert any("whoever answered them" in warning for warning in result.warnings)
    verdict = compared(study, person, TERMS, 25, tmp_path, tmp_path / "versus")
    assert (verdict.calls_a, verdict.calls_b) == (0, 25)  # the model is not asked again
    assert set(verdict.targets["disagreement"]) == {0.0}
    assert (verdict.targets["lower"] <= 0).all()
    assert (verdict.targets["upper"] >= 0).all()
    verify(read_journal(tmp_path / "versus" / "journal.db"))


def truth_of(questions: QuestionSpace, own: Answers) -> np.ndarray:
    """The reader's true rates, of every question there is."""
    losses = []
    for question in questions.nth(np.arange(questions.size)).tolist():
        asked = questions.question(question)
        call = int(questions.image_of([question])[0])
        expected = "yes" if TRUTHS[asked.sample_id, asked.concept] else "no"
        losses.append(float(own[call, asked.concept].answer != expected))
    every = questions.nth(np.arange(questions.size))
    found = named_targets(questions, TERMS["targets"], None)
    return means(questions, found, every, np.array(losses))


@pytest.mark.slow
def test_intervals_of_readers_and_differences_hold(tmp_path: Path):
    """Of 60 audits at confidence 0.9 ten misses or more of either kind have probability .07 at
    most."""
    questions, missed = space(), Counter()
    everything = [
        Card(call, 0, call, (), tuple(yes_or_no(c, "?") for c in questions.concepts))
        for call in np.unique(questions.image_of(questions.nth(np.arange(questions.size)))).tolist()
    ]
    targets = named_targets(questions, TERMS["targets"], None)
    model = means(questions, targets, *all_losses(questions, Skilled("old", 0.6)))
    terms = {**TERMS, "confidence": 0.9}
    for seed in range(60):
        folder = tmp_path / str(seed)
        journal = audited_model(folder / "journal.db", budget=40, seed=seed)
        study = Study(journal, questions)
        own = answers(everything, 0.85, seed=seed)
        rates = truth_of(questions, own)
        cards = list(study.cards())
        answered, _ = before_the_gap(study, cards, own)
        person = Person("ann", study, answered)
        result = audited(study, person, terms, len(answered), folder / "ann")
        table = result.targets
        missed["reader"] += not ((table["lower"] <= rates) & (rates <= table["upper"])).all()
        apart = compared(study, person, terms, len(answered), folder, folder / "versus").targets
        delta = model - rates
        missed["versus"] += not ((apart["lower"] <= delta) & (delta <= apart["upper"])).all()
    assert missed["reader"] <= 9
    assert missed["versus"] <= 9


@pytest.mark.slow
def test_readers_stand_beside_the_model_in_its_report(tmp_path: Path):
    journal = audited_model(tmp_path / "journal.db", budget=20)
    study = Study(journal, space())
    cards = list(study.cards())
    readers = {"ann": answers(cards, 0.95), "bob": answers(cards[:8], 0.8, "bob", seed=1)}
    first = next(iter(readers["bob"].values()))
    readers["bob"] |= by_key([replace(first, answer=UNSURE)])
    found = read_by_all(study, TERMS, readers, tmp_path)
    ann, bob = found.readers
    assert (ann.answered, ann.certified, bob.certified) == (20, 20, 8)
    assert next(t.target for t in ann.targets) == "overall error"
    assert ann.targets[0].difference is not None
    assert "8 of 20 questions: more answers, narrower intervals" in bob.notes
    assert "'I cannot tell', 1 of 8 times, counts as wrong" in bob.notes
    assert not any("cannot tell" in note for note in ann.notes)
    assert any("asked about more than once" in note for note in ann.notes)
    assert found.kappa[1] == 8 * 3
    write_beside(found, tmp_path)
    assert said_by_people(tmp_path, study.facts).reading == found
    html = page.render(journal, tmp_path)
    assert "People beside the model" in html
    assert re.search(r"ann errs \d+\.\d points (less|more) \(", html)
    assert "Agreement between readers" in html
    again = read_by_all(
        study, TERMS, readers, tmp_path
    )  # nothing is in its way, and it is the same
    assert again == found


def test_without_a_certificate_readers_have_shares_alone(tmp_path: Path):
    journal = MemoryJournal()
    with Audit(space(), Skilled("old", 0.6), journal=journal, budget=5, seed=1) as audit:
        audit.run()
    study = Study(journal, space())
    found = read_by_all(study, {}, {"ann": answers(list(study.cards()), 1.0)}, tmp_path)
    assert found.readers[0].wrong == 0
    assert found.readers[0].targets == []
    assert any("certifies nothing" in note for note in found.readers[0].notes)


def test_options_are_letters_and_the_published_readers_stand_beside(tmp_path: Path):
    file = write(tmp_path / "q.tsv", [row(k) for k in range(6)])
    questions = QuestionSpace(from_endobench(file), ["identity"], oracle=MultipleChoice())
    journal = MemoryJournal()

    class Lettered(ScriptedModel):
        def _answer(self, prompt: Any) -> Any:
            return Answer(("A",))

    terms = {**TERMS, "targets": ["overall", "concepts"]}
    given = {**AUDITED, **terms, "budget": 4, "journal": journal}
    with Audit(questions, Lettered(answers="one"), **given) as audit:
        audit.run()
    study = Study(journal, questions)
    card = next(study.cards())
    one = card.asked[0]
    assert list(one.choices) == list("ABCD")
    assert study.known() == known(list(study.cards()))
    for letter in "ABCD":
        answer = study.answer(card, by_key([said(card.number, one.id, letter)]))
        assert answer is not None
        assert study.losses(card, answer) == [float(letter != "B")]
    own = by_key([said(c.number, one.id, "B") for c in study.cards() for one in c.asked])
    answered, _ = before_the_gap(study, list(study.cards()), own)
    audited(study, Person("ann", study, answered), terms, 4, tmp_path)
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Physician" in html  # the published ones stand beside this one


def test_of_classes_one_is_chosen():
    labels = np.eye(3, dtype=int)[np.arange(12) % 3]
    images = list(np.random.default_rng(0).integers(0, 256, (12, 8, 8, 3), dtype=np.uint8))
    dataset = from_table(images, pd.DataFrame(labels, columns=["cat", "dog", "owl"]))
    questions = QuestionSpace(dataset, ["identity"], oracle=TopClass())
    journal = MemoryJournal()
    with Audit(questions, ScriptedModel(), journal=journal, budget=4, seed=1) as audit:
        audit.run()
    study = Study(journal, questions)
    card = next(study.cards())
    assert [(one.id, list(one.choices)) for one in card.asked] == [(CLASS, ["cat", "dog", "owl"])]
    answer = study.answer(card, by_key([said(card.number, CLASS, "dog")]))
    assert answer is not None
    assert answer.values == (0.0, 1.0, 0.0)


def test_what_people_cannot_be_judged_by_is_refused():
    questions = QuestionSpace(
        tiny_dataset(8, 2), ["identity", "brightness_up"], oracle=Consistency()
    )
    journal = MemoryJournal()
    with Audit(questions, ScriptedModel(), journal=journal, budget=6, seed=1) as audit:
        audit.run()
    with pytest.raises(InputError, match="by the truth alone, got one that judges answers by"):
        Study(journal, questions)
