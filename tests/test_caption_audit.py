"""An audit of captions, end to end: what is asked, found, journaled and told."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from adaptive_vtt import Audit, QuestionSpace, strategies
from adaptive_vtt.captions.memory import CaptionMemory
from adaptive_vtt.captions.rates import DISAPPEARED, RETAINED, UNNAMED, Rates
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.cli import main
from adaptive_vtt.comparing.truth import all_losses, members
from adaptive_vtt.datasets import scenes
from adaptive_vtt.errors import InputError, JournalError, ModelError
from adaptive_vtt.journal import SQLiteJournal
from adaptive_vtt.models import Answer, Prompt, RecordedCaptions, TemplateCaptioner, Unanswered
from adaptive_vtt.oracles import ReducedCaptions
from adaptive_vtt.oracles.captioned import refusal
from adaptive_vtt.prepared import write_pictures
from adaptive_vtt.questioner import Questioner
from adaptive_vtt.relations import reic
from adaptive_vtt.report import render

SCENES = scenes(12, seed=7)


def space(follow_ups: int = 3, **options: Any) -> QuestionSpace:
    return QuestionSpace(
        SCENES, reic.relations(follow_ups=follow_ups), oracle=ReducedCaptions(**options)
    )


def faultless() -> TemplateCaptioner:
    return TemplateCaptioner(omission=0, misclassification=0, fabrication=0, synonyms=0, setting=0)


def faulty(**rates: float) -> TemplateCaptioner:
    return TemplateCaptioner(**{"omission": 0.3, "misclassification": 0.1, "setting": 0, **rates})


def findings(audit: Audit) -> list[dict[str, Any]]:
    answers = [a for call in audit.journal.calls() for a in call.answers]
    return [o for a in answers for o in (a.details or {})["objects"]]


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


# -- what is found ---------------------------------------------------------------------


def test_a_captioner_without_faults_has_hardly_any_violations() -> None:
    """What is nearly out of view may still be named rightly, what is cut be overlooked."""
    audit = Audit(space(), faultless())
    audit.run()
    checked = [o for o in findings(audit) if o["status"] in ("retained", "disappeared")]
    broken = [o for o in checked if o["rule"] is not None]
    assert len(checked) > 150
    assert all(0 < o["visible"] <= 0.2 or 0.9 <= o["visible"] < 0.95 for o in broken)
    assert len(broken) < 0.03 * len(checked)


def test_what_is_left_out_is_found_and_located() -> None:
    audit = Audit(space(), faulty(misclassification=0, fabrication=0))
    audit.run()
    broken = [o for o in findings(audit) if o["rule"] in (1, 3)]
    assert broken
    assert {o["type"] for o in broken} <= {"2.1", "2.2", "1.2"}
    assert all(o["visible"] >= 0.9 for o in broken if o["rule"] == 1)


def test_names_no_box_has_are_located_by_hiding_boxes() -> None:
    audit = Audit(space(), faulty(omission=0, misclassification=0.4, fabrication=0))
    audit.run()
    hidden = [s for s in audit.journal.sources() if s.source >= len(SCENES)]
    assert hidden
    wrong = [o for o in findings(audit) if o["boxes"] and o["label"] not in (None, o["name"])]
    assert any(o["status"] in ("retained", "disappeared") for o in wrong)
    without = Audit(space(occlusion=False), faulty(omission=0, misclassification=0.4))
    without.run()
    assert not [s for s in without.journal.sources() if s.source >= len(SCENES)]
    assert any(o["status"] == "unlocated" for o in findings(without))


def test_asking_lazily_about_hidden_boxes_comes_to_what_asking_about_all_does() -> None:
    """The second and third way to hide a box are asked about only where they can matter."""
    oracle, captioner = ReducedCaptions(hide_named=True), faulty(omission=0, misclassification=0.4)
    compared = 0
    for index in range(len(SCENES)):
        sample = SCENES.sample(index)
        assert sample.image is not None
        caption = captioner.caption(sample.image)
        from adaptive_vtt.oracles import Heard

        lazy: dict[int, Any] = {}
        while more := set(oracle.versions(sample, Heard(caption, lazy))) - set(lazy):
            made = oracle.versions(sample, Heard(caption, lazy))
            lazy |= {place: captioner.caption(made[place].make()) for place in more}
        every = {p: captioner.caption(v.make()) for p, v in oracle.versions(sample, None).items()}
        assert oracle._located(sample, Heard(caption, lazy)) == (
            oracle._located(sample, Heard(caption, every)) if lazy else
            oracle._located(sample, Heard(caption, {}))
        )  # fmt: skip
        compared += len(lazy) > 0
        assert len(lazy) <= len(every)
    assert compared > 2


class Mute(TemplateCaptioner):
    """Says nothing of some pictures."""

    def __init__(self, *relations: str) -> None:
        super().__init__(setting=0)
        self.mute = relations

    def ask(self, prompts: Any) -> list[Answer | Unanswered]:
        said = super().ask(prompts)
        return [
            Answer(("A photo.",)) if p.relation in self.mute else a
            for p, a in zip(prompts, said, strict=True)
        ]


def test_a_source_caption_without_objects_is_counted_and_breaks_no_rule() -> None:
    audit = Audit(space(), Mute("identity"))
    result = audit.run()
    assert result.questions == space().size
    assert result.targets["estimate"].max() == 0
    assert {o["status"] for o in findings(audit)} == {"new"}


def test_a_follow_up_without_objects_leaves_out_all_that_is_in_view() -> None:
    audit = Audit(space(), Mute("reic/rotate"))
    audit.run()
    retained = [o for o in findings(audit) if o["status"] == "retained" and not o["said"]]
    assert retained
    assert all(o["rule"] == 1 for o in retained)


def test_images_without_boxes_are_counted_and_nothing_is_expected_of_them() -> None:
    class Blank:
        describe = "nothing"

        def detect(self, image: Any) -> tuple[()]:
            return ()

    from adaptive_vtt.captions.detectors import Detected

    blind = QuestionSpace(
        Detected(SCENES, Blank()), reic.relations(follow_ups=3), oracle=ReducedCaptions()
    )
    audit = Audit(blind, faulty())
    result = audit.run()
    assert result.questions == blind.size
    assert {o["status"] for o in findings(audit)} == {"unlocated", "new"}
    assert result.targets["estimate"].max() == 0


# -- certificates ----------------------------------------------------------------------


def test_certified_violation_rates_hold_and_can_be_verified() -> None:
    spaced, model = space(6), faulty()
    questions, losses = all_losses(spaced, model, seed=0)
    for seed in range(3):
        audit = Audit(
            spaced, model, strategy="neyman", half_width=0.12, targets=["relations"], seed=seed
        )
        result = audit.run()
        inside = members(spaced, audit._questioner.certifier.targets, questions)  # type: ignore[union-attr]
        truth = inside @ losses / inside.sum(axis=1)
        assert (result.targets["lower"] <= truth + 1e-9).all()
        assert (result.targets["upper"] >= truth - 1e-9).all()
        assert result.questions <= len(questions)
        verify(audit.journal)


# -- strategies ------------------------------------------------------------------------


def played(name: str, budget: int, seed: int = 0, follow_ups: int = 6) -> Audit:
    audit = Audit(space(follow_ups), faulty(), strategy=name, budget=budget, seed=seed)
    audit.run()
    return audit


def memory(audit: Audit) -> CaptionMemory:
    assert isinstance(audit.belief.memory, CaptionMemory)
    return audit.belief.memory


@pytest.mark.parametrize("name", ["reic", "distinct-violations"])
def test_weights_are_weights_after_any_history(name: str) -> None:
    strategy = strategies.get(name)
    for budget in (30, 60, 150):
        audit = played("random", budget)
        candidates = audit._questioner.pool.candidates(0)
        weights = strategy.weights(candidates, audit.belief)
        assert weights.shape == (len(candidates),)
        assert torch.isfinite(weights).all()
        assert (weights >= 0).all()
        assert weights.sum() > 0
        assert torch.equal(weights, strategy.weights(candidates, audit.belief))


@pytest.mark.parametrize("name", ["reic", "distinct-violations"])
def test_strategies_for_captions_need_captions(name: str) -> None:
    from adaptive_vtt.testing import tiny_dataset

    questioner = Questioner(QuestionSpace(tiny_dataset(), ["identity"]), strategies.get(name))
    with pytest.raises(InputError, match=f"strategy '{name}': needs an audit of captions"):
        questioner.draw()


def test_reic_takes_three_of_each_relation_and_finishes_an_image_before_the_next() -> None:
    audit = played("reic", 70)
    samples = [d.sample for d in audit.journal.draws()]
    drawn = memory(audit).drawn
    assert len(dict.fromkeys(samples)) == len(drawn)
    order = [s for i, s in enumerate(samples) if i == 0 or s != samples[i - 1]]
    assert order == list(dict.fromkeys(order))
    relation = memory(audit).relation
    for variants in list(drawn.values())[:-1]:
        assert np.unique(relation[variants], return_counts=True)[1].tolist() == [3, 3, 3]


def test_distinct_violations_finds_more_than_random() -> None:
    found = {name: 0 for name in ("random", "distinct-violations")}
    for name in found:
        found[name] = sum(len(memory(played(name, 90, seed)).found) for seed in range(3))
    assert found["distinct-violations"] > 1.3 * found["random"]


def test_rates_tell_names_sizes_and_checks_apart() -> None:
    rates, rng = Rates(), np.random.default_rng(0)
    chances = {0: 0.05, 1: 0.3}
    for _ in range(600):
        name, share = int(rng.integers(2)), float(rng.choice([0.003, 0.1]))
        wrong = rng.random() < chances[name] * (2 if share < 0.01 else 1)
        rates.observe(name, share, 0, RETAINED, bool(wrong))
        rates.observe(name, share, 0, DISAPPEARED, False)
    sizes, passed = np.array([0.1, 0.1, 0.003, 0.1]), np.zeros(4, int)
    found = rates.predict(np.array([0, 1, 1, -1]), sizes, passed)
    assert found[1, RETAINED] == pytest.approx(0.3, abs=0.08)
    assert found[0, RETAINED] < 0.6 * found[1, RETAINED] < 0.6 * found[2, RETAINED]
    assert found[:3, DISAPPEARED].max() < 0.05
    assert found[0, UNNAMED] > found[0, RETAINED]  # never checked: the first guess
    assert (found[3] == 0).all()


def test_memory_follows_from_the_journal_alone(tmp_path: Path) -> None:
    options: dict[str, Any] = {"strategy": "distinct-violations", "budget": 60}
    whole = Audit(space(), faulty(), **options)
    whole.run()
    for budget in (25, 60):
        with Audit(
            space(), faulty(), journal=tmp_path / "j.db", **options | {"budget": budget}
        ) as a:
            a.run()
            draws = [(d.question, d.probability) for d in a.journal.draws()]
    assert draws == [(d.question, d.probability) for d in whole.journal.draws()]


# -- recorded captions, pictures, the report -----------------------------------------------


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all pictures of a small space, captioned."""
    import cv2

    folder = tmp_path_factory.mktemp("recorded") / "pictures"
    small = QuestionSpace(
        scenes(4), reic.relations(follow_ups=2), oracle=ReducedCaptions(occlusion=False)
    )
    assert write_pictures(small, 0, folder) == 4 + small.size
    table = pd.read_csv(folder / "answers.csv", dtype=str)
    images = [cv2.imread(str(folder / "images" / name))[:, :, ::-1] for name in table["file"]]
    captioner = faulty(seed=1)  # type: ignore[arg-type]
    table["caption"] = [captioner.caption(np.ascontiguousarray(image)) for image in images]
    table.to_csv(folder / "answers.csv", index=False)
    (folder / "SPEC.toml").write_text(
        '[dataset]\nkind = "scenes"\ncount = 4\n[model]\nkind = "recorded"\n'
        'answers = "answers.csv"\n[space]\nrelations = ["reic"]\nfollow_ups = 2\n'
        '[oracle]\nkind = "captions"\nocclusion = false\n'
    )
    return folder


def test_recorded_captions_are_audited_labelled_and_reported(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert run("audit", str(recorded / "SPEC.toml"), "--out", str(out), "--json") == 0
    assert json.loads(capsys.readouterr().out)["questions"] == 24
    assert run("verify", str(out)) == 0
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Captions that break a rule" in page
    journal = SQLiteJournal(out / "journal.db")
    broken = [a for c in journal.calls() for a in c.answers if a.loss]
    assert broken
    assert all(a.said in page for a in broken if a.said)
    assert run("label", str(out), "--inspector", "ann", "--html") == 0
    assert run("export", str(out), "--failures", str(tmp_path / "failures")) == 0


def test_json_and_csv_hold_the_same_captions(recorded: Path, tmp_path: Path) -> None:
    table = pd.read_csv(recorded / "answers.csv", dtype=str)
    (tmp_path / "a.json").write_text(table.to_json(orient="records"))
    prompt = Prompt(None, ("caption",), table["sample"][3], table["relation"][3], 1)
    one, other = (
        RecordedCaptions.read(path) for path in (recorded / "answers.csv", tmp_path / "a.json")
    )
    assert one.ask([prompt]) == other.ask([prompt])


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("scene-0-00002,reic/stretch,2,", "elsewhere,reic/stretch,2,",
         "expected a caption of sample 'scene-0-00002', relation 'reic/stretch', severity 2"),
        ("reic/crop,1,", "reic/crop,one,", "expected a whole number as severity, got 'one'"),
        ("sample,relation,severity,file,caption", "sample,relation,severity,file,words",
         "expected the columns sample, relation, severity, caption, got no 'caption'"),
    ],
)  # fmt: skip
def test_faulty_recordings_are_refused_in_a_sentence(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    old: str, new: str, sentence: str,
) -> None:  # fmt: skip
    text = (recorded / "answers.csv").read_text()
    assert old in text
    (tmp_path / "answers.csv").write_text(text.replace(old, new, 1))
    (tmp_path / "SPEC.toml").write_text((recorded / "SPEC.toml").read_text())
    assert run("audit", str(tmp_path / "SPEC.toml"), "--out", str(tmp_path / "r")) == 2
    line = " ".join(capsys.readouterr().err.split())
    assert sentence in line
    assert "answers.csv" in line


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ('wordnet = "nowhere"', "nowhere"),
        ("down = 0.9\nup = 0.2", "expected 0 <= down < up <= 1, got 0.9 and 0.2"),
        ("threshold = 0.5\nmetric = 'iou'", "oracle.metric: is no field of kind 'captions'"),
    ],
)
def test_faulty_specs_are_refused_in_a_sentence(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], fields: str, sentence: str
) -> None:
    spec = (recorded / "SPEC.toml").read_text() + fields
    (tmp_path / "SPEC.toml").write_text(spec)
    (tmp_path / "answers.csv").write_text((recorded / "answers.csv").read_text())
    assert run("audit", str(tmp_path / "SPEC.toml"), "--out", str(tmp_path / "r")) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())


def test_the_report_shows_boxes_rules_and_error_types() -> None:
    audit = Audit(space(), faulty(), budget=80)
    audit.run()
    page = render(audit.journal)
    for words in ("what is still in view must be named", "omission in the follow-up", 'class="box'):
        assert words in page
    assert "Sensitivity" not in page.split('id="captions"')[0].split("Right and wrong")[-1][:10]


# -- what a review and a trial found -------------------------------------------------------


def test_options_of_relations_are_part_of_what_is_audited(tmp_path: Path) -> None:
    def audit(**options: bool) -> Audit:
        made = QuestionSpace(
            SCENES, reic.relations(follow_ups=3, **options), oracle=ReducedCaptions()
        )
        return Audit(made, faulty(), budget=30, journal=tmp_path / "j.db")

    audit().run()
    with pytest.raises(JournalError, match="belongs to another space"):
        audit(by_ambiguity=False)


def test_a_budget_below_one_question_is_refused() -> None:
    """A scene has 5 boxes at most: itself, 15 versions, the follow-up."""
    with pytest.raises(InputError, match=r"budget: expected at least 17 calls.*got 16"):
        Audit(space(), faulty(), budget=16)
    audit = Audit(space(), faulty(), budget=17)
    assert 0 < audit.run().calls <= 17


class Says(TemplateCaptioner):
    """Says the same of some pictures."""

    def __init__(self, said: Any, *relations: str) -> None:
        super().__init__(setting=0)
        self.said, self.relations = said, relations

    def ask(self, prompts: Any) -> list[Answer | Unanswered]:
        usual = super().ask(prompts)
        return [
            Answer((self.said,)) if not self.relations or p.relation in self.relations else a
            for p, a in zip(prompts, usual, strict=True)
        ]


@pytest.mark.parametrize("relation", ["identity", "reic/crop"])
def test_numbers_are_no_captions(relation: str) -> None:
    with pytest.raises(ModelError, match=r"captions: expected a text, got 0\.5 for sample 'scene"):
        Audit(space(), Says(0.5, relation)).run()


def test_halves_of_characters_are_written_down_as_question_marks(tmp_path: Path) -> None:
    audit = Audit(space(), Says("a dog \ud800", "reic/crop"), budget=30, journal=tmp_path / "j.db")
    audit.run()
    said = [a.said for call in audit.journal.calls() for a in call.answers]
    assert "a dog ?" in said


def test_of_a_refused_source_no_version_is_paid_for_and_nothing_counts() -> None:
    audit = Audit(space(), Says("I'm sorry, I can't help with that.", "identity"))
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


def test_where_nothing_is_located_the_result_says_so(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil

    shutil.copytree(recorded / "images", tmp_path / "plain")
    (tmp_path / "model.py").write_text(
        "def captions(images):\n    return ['A dog near a car.' for _ in images]\n"
    )
    (tmp_path / "SPEC.toml").write_text(
        '[dataset]\nkind = "images"\npath = "plain"\n[model]\ntarget = "model.py:captions"\n'
        '[space]\nrelations = ["reic"]\nfollow_ups = 1\n[oracle]\nkind = "captions"\n'
        "[audit]\nbudget = 25\n"
    )
    assert run("audit", str(tmp_path / "SPEC.toml"), "--out", str(tmp_path / "r")) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "follow-ups could be checked: 0 violations, of 0 different things" in told
    assert "objects have to be located" in told
    found = json.loads((tmp_path / "r" / "result.json").read_text())["captions"]
    assert found["comparable"] == 0 < found["judged"]


def test_an_unfilled_table_is_refused(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pd.read_csv(recorded / "answers.csv", dtype=str).assign(caption="")
    table.to_csv(tmp_path / "answers.csv", index=False)
    (tmp_path / "SPEC.toml").write_text((recorded / "SPEC.toml").read_text())
    assert run("audit", str(tmp_path / "SPEC.toml"), "--out", str(tmp_path / "r")) == 2
    line = " ".join(capsys.readouterr().err.split())
    assert "expected captions, got 28 rows without any" in line
    assert not (tmp_path / "r" / "journal.db").exists()


def test_boxes_without_finite_edges_are_refused() -> None:
    from adaptive_vtt.captions.detectors import Detected
    from adaptive_vtt.datasets.base import Box

    class Broken:
        describe = "broken"

        def detect(self, image: Any) -> tuple[Box, ...]:
            return (Box("dog", float("nan"), 0, 5, 5),)

    with pytest.raises(
        InputError, match=r"scene-7-00000.: expected finite edges of boxes, got Box"
    ):
        Detected(SCENES, Broken()).sample(0)


def test_objects_that_fill_the_picture_leave_crops_that_differ() -> None:
    from adaptive_vtt.datasets.base import Box, Sample

    image = np.zeros((120, 160, 3), np.uint8)
    filled = Sample("s", image, {}, boxes=(Box("dog", 1, 1, 159, 119),))
    crops = reic.Reduced("crop").candidates(filled)
    assert len(set(crops)) == reic.FOLLOW_UPS
    assert all(crop.image(image).shape != image.shape for crop in crops)
