"""The optional embedding: what it gives, and what it says where it is missing."""

import sys

import numpy as np
import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.errors import InputError
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.surrogates import embed
from adaptive_vtt.testing import ScriptedModel, tiny_dataset


def test_a_missing_package_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    with pytest.raises(InputError, match=r"pip install 'efficientnet-lite-pytorch>="):
        embed(tiny_dataset())


def test_a_dataset_without_images_is_refused() -> None:
    with pytest.raises(InputError, match="expected images, but dataset 'tiny' has none"):
        embed(tiny_dataset(images=False))


def test_features_are_pooled_and_tell_images_apart() -> None:
    pytest.importorskip("efficientnet_lite_pytorch")
    dataset = tiny_dataset(5)
    features = embed(dataset, batch=2)
    assert features.shape == (5, 1280)
    assert np.isfinite(features).all()
    assert np.ptp(features, axis=0).max() > 0.05
    assert embed(dataset, batch=5) == pytest.approx(features, abs=1e-4)


# -- journals ------------------------------------------------------------------------------


def audit(journal: MemoryJournal, budget: int, features: float | None = None) -> Audit:
    """Of a tiny dataset, whose features are these numbers where they are given."""
    dataset = tiny_dataset()
    if features is not None:
        dataset.features = np.arange(24.0).reshape(12, 2) ** features
    space = QuestionSpace(dataset, ["identity"])
    return Audit(space, ScriptedModel(), journal=journal, half_width=0.2, budget=budget, seed=1)


def test_an_audit_that_goes_on_by_other_features_says_so_from_then_on() -> None:
    journal = MemoryJournal()
    audit(journal, 2, 1).run()
    assert not audit(journal, 3, 1).run().warnings
    told = "the features of source images were others when the audit was resumed"
    for features in (2, 1):
        assert any(told in said for said in audit(journal, 4, features).run().warnings)
