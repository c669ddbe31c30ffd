"""An audit of captions: findings and refusals; goldens hold its certificates and report."""

from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.errors import JournalError, ModelError
from adaptive_vtt.experiments.reic.drawn_scenes import scenes
from adaptive_vtt.experiments.reic.reic_scheme import locate
from adaptive_vtt.experiments.reic.template_captioner import TemplateCaptioner
from adaptive_vtt.models import Answer, Unanswered
from adaptive_vtt.oracles import Received, ReducedCaptions
from adaptive_vtt.oracles.captioned import refusal
from adaptive_vtt.relations import reic
from tests.helpers.captioned import SCENES, faultless, faulty, findings, space


class Says(TemplateCaptioner):
    """Says the same of some pictures; of all, where no relation is named."""

    def __init__(self, reply: Any, *relations: str) -> None:
        super().__init__(setting=0)
        self.reply, self.relations = reply, relations

    def ask(self, prompts: Any) -> list[Answer | Unanswered]:
        usual = super().ask(prompts)
        return [
            Answer((self.reply,)) if not self.relations or p.relation in self.relations else a
            for p, a in zip(prompts, usual, strict=True)
        ]


# -- findings --------------------------------------------------------------------------


@pytest.mark.slow
def test_a_captioner_without_faults_has_hardly_any_violations() -> None:
    """What is nearly out of view may still be named rightly, what is cut be overlooked."""
    audit = Audit(space(), faultless())
    audit.run()
    checked = [o for o in findings(audit) if o["status"] in ("retained", "disappeared")]
    broken = [o for o in checked if o["rule"] is not None]
    assert len(checked) > 150
    assert all(0 < o["visible"] <= 0.2 or 0.9 <= o["visible"] < 0.95 for o in broken)
    assert len(broken) < 0.03 * len(checked)


@pytest.mark.slow
def test_asking_lazily_about_hidden_boxes_comes_to_what_asking_about_all_does() -> None:
    """The second and third way to hide a box are asked about only where they can matter."""
    oracle, captioner = ReducedCaptions(hide_named=True), faulty(omission=0, misclassification=0.4)
    compared = 0
    for index in range(len(SCENES)):
        sample = SCENES.sample(index)
        assert sample.image is not None
        caption = captioner.caption(sample.image)
        lazy: dict[int, Any] = {}
        while more := set(oracle.versions(sample, Received(caption, lazy))) - set(lazy):
            made = oracle.versions(sample, Received(caption, lazy))
            lazy |= {place: captioner.caption(made[place].make()) for place in more}
        every = {p: captioner.caption(v.make()) for p, v in oracle.versions(sample, None).items()}
        received = Received(caption, every if lazy else {})
        assert locate(oracle, sample, Received(caption, lazy)) == locate(oracle, sample, received)
        compared += len(lazy) > 0
        assert len(lazy) <= len(every)
    assert compared > 2


def test_images_without_boxes_are_counted_and_nothing_is_expected_of_them() -> None:
    class Blank:
        fingerprint = "nothing"

        def detect(self, image: Any) -> tuple[()]:
            return ()

    from adaptive_vtt.oracles.captions.detectors import Detected

    blind = QuestionSpace(
        Detected(scenes(4), Blank()), reic.relations(follow_ups=1), oracle=ReducedCaptions()
    )
    audit = Audit(blind, faulty())
    result = audit.run()
    assert result.questions == blind.size
    assert {o["status"] for o in findings(audit)} == {"unlocated", "new"}
    assert result.targets["estimate"].max() == 0


# -- what cannot be used, and what does not count -------------------------------------------


def test_options_of_relations_are_part_of_what_is_audited(tmp_path: Path) -> None:
    def audit(**options: bool) -> Audit:
        made = QuestionSpace(
            SCENES, reic.relations(follow_ups=3, **options), oracle=ReducedCaptions()
        )
        return Audit(made, faulty(), budget=30, journal=tmp_path / "j.db")

    audit().run()
    with pytest.raises(JournalError, match="belongs to another space"):
        audit(by_ambiguity=False)


@pytest.mark.parametrize("relation", ["identity", "reic/crop"])
def test_numbers_are_no_captions(relation: str) -> None:
    with pytest.raises(ModelError, match=r"captions: expected a text, got 0\.5 for sample 'scene"):
        Audit(space(), Says(0.5, relation)).run()


@pytest.mark.slow
def test_of_a_refused_source_no_version_is_paid_for_and_nothing_counts() -> None:
    audit = Audit(space(1), Says("I'm sorry, I can't help with that.", "identity"))
    result = audit.run()
    assert len(audit.journal.sources()) == len(SCENES)
    assert result.targets["estimate"].isna().all()
    assert result.captions is not None
    assert result.captions.judged == 0


@pytest.mark.parametrize(
    ("caption", "refuses"),
    [
        ("I'm sorry, I can't help with that.", True),
        ("As an AI model, I cannot describe this image.", True),
        ("A boy cannot see his dog.", False),
        ("A sign that says ask a professional.", False),
    ],
)
def test_only_who_speaks_in_the_first_person_refuses(caption: str, refuses: bool) -> None:
    assert (refusal(caption) is not None) == refuses
