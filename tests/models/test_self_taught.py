"""The self-taught proxy: learns labels and not its own images, and audits use it by themselves."""

from copy import copy

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.datasets import from_table
from adaptive_vtt.engine import predictors
from adaptive_vtt.engine.tensors import array, tensor
from adaptive_vtt.errors import InputError
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.models import PythonModel, SelfTaught
from adaptive_vtt.models.local import self_taught
from adaptive_vtt.oracles import Consistency, MaskDrop, TopClass
from adaptive_vtt.testing import ScriptedModel
from adaptive_vtt.testing.contracts import ModelContract
from tests.helpers.audits import content, finished

COUNT = 160
RNG = np.random.default_rng(3)
NOISE = RNG.integers(0, 200, (COUNT, 16, 16, 1), dtype=np.uint8)
BRIGHT = RNG.random(COUNT) < 0.5
IMAGES = NOISE + (BRIGHT * 40).astype(np.uint8)[:, None, None, None]
OPTIONS = {"half_width": 0.05, "targets": ["overall"], "seed": 1}


@pytest.fixture
def quick(monkeypatch):
    """Few steps, for tests that are not about what is learnt."""
    monkeypatch.setattr(self_taught, "STEPS", 10)


def labelled(known=COUNT, images=IMAGES):
    """Is the image bright? Labels are known of the first images alone."""
    wanted = np.where(np.arange(COUNT) < known, BRIGHT, np.nan)
    return from_table(images, pd.DataFrame({"bright": wanted, "dark": 1 - wanted}))


def space(**options):
    return QuestionSpace(labelled(), ["identity", "gaussian_noise"], severities=[3], **options)


# -- what it learns ------------------------------------------------------------------------


@pytest.mark.slow
def test_it_learns_from_labels_and_knows_images_whose_labels_are_unknown():
    likely = SelfTaught.of(labelled(known=100)).predict(IMAGES, np.arange(COUNT))
    right = (likely[:, 0] > 0.5) == BRIGHT
    assert right[:100].mean() > 0.95
    assert right[100:].mean() > 0.95
    assert np.abs(likely.sum(axis=1) - 1).max() < 0.3  # dark is not bright


@pytest.mark.slow
def test_a_follow_up_is_answered_by_nets_that_never_saw_its_source():
    coins = RNG.random(COUNT) < 0.5  # nothing to learn, but by heart
    net = SelfTaught.of(from_table(NOISE, pd.DataFrame({"coin": coins.astype(int)})))
    own = net.predict(NOISE, np.arange(COUNT))[:, 0] > 0.5
    assert 0.3 < (own == coins).mean() < 0.7  # 5 standard deviations about chance
    net._teams = [(nets, (fold + 1) % 5) for nets, fold in net._teams]
    others = net.predict(NOISE, np.arange(COUNT))[:, 0] > 0.5
    assert (others == coins).mean() > 0.8


@pytest.mark.usefixtures("quick")
def test_the_same_labels_and_seed_teach_the_same_to_the_last_bit():
    one, same = SelfTaught.of(labelled(), seed="a"), SelfTaught.of(labelled(), seed="a")
    assert one.describe() == same.describe()
    assert one.content() != SelfTaught.of(labelled(), seed="b").content()
    assert one.content() != SelfTaught.of(labelled(known=159), seed="a").content()


@pytest.mark.usefixtures("quick")
class TestContract(ModelContract):
    def make(self):
        table = pd.DataFrame({c: BRIGHT.astype(int) for c in self.concepts})
        return SelfTaught.of(from_table(IMAGES, table))


# -- when audits use it --------------------------------------------------------------------


def proxies(space, **options):
    return Audit(space, ScriptedModel(), **{**OPTIONS, **options})._made.proxies.names


@pytest.mark.usefixtures("quick")
def test_audits_teach_themselves_a_proxy_where_labels_judge_and_are_enough(monkeypatch):
    assert proxies(space()) == proxies(space(oracle=TopClass())) == ["self-taught"]
    assert proxies(space(oracle=Consistency())) == []
    assert proxies(QuestionSpace(labelled(images=None))) == []
    assert proxies(QuestionSpace(labelled(known=40))) == []
    assert proxies(space(), half_width=None) == []  # nothing is certified
    assert proxies(space(), surrogate=False) == []
    assert proxies(space(), self_taught=False) == []
    monkeypatch.setattr(predictors, "MAX_PIXELS", 2 * COUNT * 16 * 16 - 1)
    assert proxies(space()) == []
    assert proxies(space(), self_taught=True) == ["self-taught"]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("where", "message"),
    [
        (space(oracle=Consistency()), r"judges answers by labels .* got Consistency; leave"),
        (space(oracle=MaskDrop()), r"got MaskDrop \(nets that were taught with masks have saved"),
        (QuestionSpace(labelled(images=None)), "with no images"),
        (QuestionSpace(labelled(known=40)), "30 labels on each side, got .* fewer labels"),
    ],
)
def test_asked_for_where_it_cannot_be_had_it_is_an_error(where, message):
    with pytest.raises(InputError, match=message):
        proxies(where, self_taught=True)


def noisy(images):
    """A model under test that fails where noise hides how bright an image is."""
    bright = np.array([float(np.mean(image[:8]) > 120) for image in images])
    return np.stack([bright, 1 - bright], axis=1)


@pytest.mark.usefixtures("quick")
def test_predictions_are_of_the_follow_up_and_the_side_asked_about():
    audit = Audit(space(), PythonModel(noisy), **OPTIONS)
    here, taught = audit.space, audit._made.proxies.self_taught
    questions = here.nth(np.array([0, 5, 400, 630]))
    sample, variant, concept = here.parts(questions)
    truth = here.truth(questions)
    columns = (tensor(np.asarray(c)) for c in (sample, variant, concept, truth.astype(np.int64)))
    losses = array(audit._made.proxies(*columns))[:, 0]
    for k, image in enumerate(here.image_of(questions).tolist()):
        likely = taught.predict(here.follow_up(image).image[None], sample[[k]])[0, concept[k]]
        assert losses[k] == pytest.approx(abs(likely - truth[k]), abs=1e-5)


@pytest.mark.usefixtures("quick")
def test_audits_of_one_space_share_nets_and_small_follow_ups():
    here = space()
    first, second = (Audit(here, ScriptedModel(), **OPTIONS)._made.proxies for _ in range(2))
    assert first.self_taught is second.self_taught is not None
    assert first.renderings is second.renderings
    third = Audit(space(), ScriptedModel(), **OPTIONS)._made.proxies
    assert first.self_taught is not third.self_taught
    assert copy(here).shared == {}  # as a pickle of it has none


# -- journals ------------------------------------------------------------------------------


@pytest.mark.usefixtures("quick")
@pytest.mark.slow
def test_a_killed_audit_resumes_with_the_draws_of_an_undisturbed_one(tmp_path):
    whole = finished(space(), model=PythonModel(noisy), budget=24, **OPTIONS)
    path = tmp_path / "journal.db"
    with Audit(space(), PythonModel(noisy), budget=24, journal=path, **OPTIONS) as first:
        for _ in range(11):
            (call,) = first.ask()
            first.tell(call, first.model.ask([call.prompt])[0])
        first.ask()
    with Audit(space(), PythonModel(noisy), budget=24, journal=path, **OPTIONS) as second:
        second.run()
        assert content(second.journal) == content(whole.journal)
        assert not second.journal.facts()["self_taught_changed"]
        assert not second.result().warnings
    fact = whole.journal.facts()["self_taught"]
    assert fact == {"version": "2", "images": COUNT, "weights": fact["weights"]}


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_nets_that_come_out_otherwise_on_resuming_are_a_warning(monkeypatch):
    journal = MemoryJournal()
    Audit(space(), PythonModel(noisy), budget=5, journal=journal, **OPTIONS).run()
    before = content(journal)[0]
    with monkeypatch.context() as patched:
        patched.setattr(SelfTaught, "content", lambda self: "other weights")
        Audit(space(), PythonModel(noisy), budget=8, journal=journal, **OPTIONS).run()
    again = Audit(space(), PythonModel(noisy), budget=9, journal=journal, **OPTIONS)
    again.run()
    assert content(journal)[0][:5] == before
    assert "self-taught proxy came out otherwise" in again.result().warnings[0]


@pytest.mark.usefixtures("quick")
def test_an_audit_begun_without_is_resumed_without():
    journal = MemoryJournal()
    Audit(space(), PythonModel(noisy), budget=3, journal=journal, self_taught=False, **OPTIONS)
    assert Audit(space(), PythonModel(noisy), budget=3, journal=journal, **OPTIONS).prepared is None
