"""Figures in notebooks, and the page of a comparison."""

from typing import Any

import pytest

import adaptive_vtt as avtt
from adaptive_vtt.testing import ScriptedModel, tiny_dataset

EVIL = "<script>alert(1)</script><b>"


@pytest.mark.slow
def test_a_comparison_has_a_page_with_the_names_of_its_models(tmp_path: Any) -> None:
    space = avtt.QuestionSpace(tiny_dataset(30, 2), ["identity", "gaussian_noise"])
    old, new = ScriptedModel(), ScriptedModel(seed=5)
    old.name, new.name = f"old {EVIL}", "new net"
    options: dict[str, Any] = {"margin": 0.1, "budget": 40, "seed": 1, "targets": ["relations"]}
    with avtt.Versus(space, old, new, **options) as versus:
        verdict = versus.run()
        html = verdict._repr_html_()
        assert "<script" not in html
        assert "old &lt;script&gt;" in html
        assert verdict.differences[0] in html
        assert html.count("<tr") - 1 == len(verdict.targets) == 2
        assert f"{verdict.calls_b} of new net" in repr(verdict)
        figure = verdict.plot()
        assert [*figure.data[0].x][::-1] == pytest.approx([*-100 * verdict.targets["delta"]])
        assert "Differences" in verdict.report(tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("versions", "notes", "names"),
    [
        ((None, None), {}, ("A", "B")),
        (("1", "2"), {"files": ["a.py", "b.py"]}, ("scripted 1", "scripted 2")),
        (("1", "1"), {"files": ["a.py", "b.py"]}, ("a.py", "b.py")),
    ],
)
def test_models_of_one_name_are_told_apart_by_version_or_file(
    versions: tuple[str | None, str | None], notes: dict[str, Any], names: tuple[str, str]
) -> None:
    models = ScriptedModel(), ScriptedModel(seed=5)
    for model, version in zip(models, versions, strict=True):
        model.version = version
    space = avtt.QuestionSpace(tiny_dataset(6, 2))
    options: dict[str, Any] = {"budget": 4, "seed": 1, "surrogate": False, "notes": notes}
    with avtt.Versus(space, *models, **options) as versus:
        assert versus.run().names == names
