"""The first number: the error on images as they are, then with the changes among them."""

from html import unescape

import adaptive_vtt as avtt
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.utils.figures import span

QUICK = {"budget": 8, "half_width": 0.3, "surrogate": False, "self_taught": False, "seed": 0}


def headline(relations: list[str], targets: list[str], oracle: str = "correctness") -> str | None:
    made = avtt.oracles.REGISTRY.make(oracle, {})
    space = avtt.QuestionSpace(tiny_dataset(), relations, oracle=made)
    result = avtt.Audit(space, ScriptedModel(), targets=targets, **QUICK).run()
    sentence = result.headline
    assert result.to_dict()["headline"] == sentence
    if sentence is not None:
        assert repr(result).startswith(f"Result({sentence}; ")
        assert sentence in unescape(result._repr_html_())
        for row in result.targets.itertuples():
            if row.target in ("relation identity: label error", "overall label error"):
                known, guess = span(row.lower, row.upper), f"{100 * row.estimate:.1f} %"
                wide = row.upper - row.lower > 0.5
                words = f"hardly known yet ({known})" if wide else f"{known} (best guess {guess})"
                assert words in sentence
    return sentence


def test_original_images_come_first() -> None:
    both = headline(["identity", "rotation"], ["overall", "relations"])
    assert both is not None
    assert both.startswith("Label error on your original images: ")
    assert "; including image changes: " in both
    alone = headline(["identity", "rotation"], ["relations"])
    assert alone is not None
    assert "image changes" not in alone


def test_nothing_is_said_where_it_is_no_target_or_cannot_be_wrong() -> None:
    assert headline(["identity", "rotation"], ["overall"]) is None
    assert headline(["identity"], ["overall", "relations"]) is None
    assert headline(["identity", "rotation"], ["relations"], "consistency") is None
