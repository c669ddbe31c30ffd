"""Still pictures of figures, and the page of a comparison, for notebooks without scripts."""

import copy
from typing import Any
from xml.etree import ElementTree

import pytest

import adaptive_vtt as avtt
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.utils.notebook_figure import NotebookFigure, svg

EVIL = "<script>alert(1)</script><b>"
SVG = "{http://www.w3.org/2000/svg}"


def drawn(figure: dict[str, Any], kind: str) -> list[dict[str, str]]:
    """The attributes of every element of a kind, the white page and the key left out."""
    found = [e.attrib for e in ElementTree.fromstring(svg(figure)).iter(SVG + kind)]
    return found[1:] if kind == "rect" else [a for a in found if a.get("r") != "4"]


@pytest.fixture(scope="module")
def audit() -> avtt.Audit:
    space = avtt.QuestionSpace(tiny_dataset(20, 2), ["identity", "gaussian_noise"])
    found = avtt.Audit(
        space, ScriptedModel(), half_width=0.02, budget=30, seed=1, self_taught=False
    )
    found.run()
    return found


@pytest.mark.slow
def test_every_plot_brings_a_still_picture(audit: avtt.Audit) -> None:
    result = audit.result()
    names = ["intervals", "widths", "conditions", "concepts", "cost", "beliefs", "through"]
    for name in [*names, "concept", "images", "calibration", "uncertainty"]:
        told = result.plot(name)._repr_mimebundle_()
        ElementTree.fromstring(told["image/svg+xml"])
        assert '<img id="still-' in told["text/html"], name
        assert not callable(result.plot(name)._ipython_display_), "IPython would ask that first"
        assert "nan" not in told["image/svg+xml"], name
    assert copy.deepcopy(result.plot()) == result.plot()


def test_a_map_has_a_cell_per_value_and_darker_ones_for_more() -> None:
    heat = {"type": "heatmap", "x": ["a", "b"], "y": ["c", "d"], "z": [[0, 1], [None, 0.5]]}
    heat["colorscale"] = [[0, "#ffffff"], [1, "#000000"]]
    cells = drawn({"data": [heat], "layout": {}}, "rect")
    assert [cell["fill"] for cell in cells] == [
        "rgb(255, 255, 255)",
        "rgb(0, 0, 0)",
        "rgb(128, 128, 128)",
    ]
    left, right, below = cells[0], cells[1], cells[2]
    assert float(left["x"]) < float(right["x"]) == float(below["x"])
    assert float(below["y"]) < float(right["y"]), "the first row is the lowest"


def test_dots_stand_at_their_values_and_error_bars_reach_as_far_as_they_say() -> None:
    trace: dict[str, Any] = {"type": "scatter", "mode": "markers"}
    trace |= {"x": [0, 1, 2], "y": [0.0, 1.0, None]}
    trace["error_y"] = {"array": [0.5, 0.5, 0.5], "arrayminus": [0.0, 0.5, 0.5]}
    layout = {"yaxis": {"range": [0, 2]}, "xaxis": {"range": [0, 2]}}
    low, high = drawn({"data": [trace], "layout": layout}, "circle")
    assert float(low["cx"]) < float(high["cx"])
    height = float(low["cy"]) - float(high["cy"])
    bars = [a for a in drawn({"data": [trace], "layout": layout}, "line") if a["x1"] == a["x2"]]
    reach = [float(bar["y1"]) - float(bar["y2"]) for bar in bars]
    assert reach == pytest.approx([height / 2, height], abs=0.2)


def test_names_are_text_in_still_pictures() -> None:
    trace = {"type": "scatter", "name": EVIL, "x": [EVIL, "b"], "y": [1, 2]}
    layout = {"title": {"text": f"&lt;i>{EVIL}"}}
    picture = svg({"data": [trace, {**trace, "type": "bar"}], "layout": layout})
    assert "<script" not in picture
    words = "".join(ElementTree.fromstring(picture).itertext())
    assert f"<i>{EVIL}" in words
    found = NotebookFigure({"data": [trace], "layout": layout})._repr_mimebundle_()
    assert "<script>alert" not in found["text/html"]


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
        assert verdict.told[0] in html
        assert html.count("<svg") == len(verdict.targets) == 2
        assert f"{verdict.calls_b} of new net" in repr(verdict)
        figure = verdict.plot()
        assert [*figure.data[0].x][::-1] == pytest.approx([*-100 * verdict.targets["delta"]])
        assert "Disagreements" in verdict.report(tmp_path / "page.html").read_text()


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
