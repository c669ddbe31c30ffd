"""Figures of pages: their colours, their words and their numbers."""

import re
from pathlib import Path

import pytest

from adaptive_vtt.results import report
from adaptive_vtt.results.report.plots import figure_of, numbers, upward
from adaptive_vtt.utils.figures import PALETTE, money, shorten


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, 1 to 21, as WCAG 2.1 has it."""

    def light(colour: str) -> float:
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
def test_words_and_marks_are_read_on_every_ground_in_light_and_dark(theme: int) -> None:
    colours = {name: both[theme] for name, both in PALETTE.items()}
    for name, least in {"text": 7, "muted": 4.5, "accent": 4.5, "bad": 4.5, "third": 4.5}.items():
        for ground in ("surface", "page"):
            assert contrast(colours[name], colours[ground]) >= least, (name, ground)
    assert contrast(colours["most-ink"], colours["most"]) >= 4.5
    assert contrast(colours["text"], colours["least"]) >= 7


def test_style_sheets_name_no_colour_of_their_own_and_every_variable_is_known() -> None:
    package = Path(report.__file__).parents[2]
    sheets = [*(package / "results").rglob("*.css"), *(package / "people").rglob("*.css")]
    assert len(sheets) == 3
    for sheet in sheets:
        text = sheet.read_text()
        assert {*re.findall(r"var\(--([\w-]+)", text)} <= {*PALETTE, "shade"}
        assert {*re.findall(r"#[0-9a-f]{6}\b", text)} <= {"#ffd400"}, "boxes stand on any picture"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "$0.00"),
        (0.08, "$0.08"),
        (0.0834, "$0.083"),
        (4.2e-6, "$0.0000042"),
        (1234.5, "$1,234.50"),
    ],
)
def test_money_has_its_currency_and_two_decimals_that_count(value: float, text: str) -> None:
    assert money(value) == text


def test_half_widths_are_rounded_up_and_exact_ones_kept() -> None:
    assert upward([0.12341, 0.1234, 0.5, 0.0]) == [0.1235, 0.1234, 0.5, 0.0]


def test_the_table_has_the_ends_and_what_a_figure_always_shows() -> None:
    x = list(range(101))
    lines = [
        {"x": x, "y": [k / 1000] * 101, "name": f"t<{k}>", "colour": "accent", "only": str(k)}
        for k in range(9)
    ]
    lines.append({"x": x, "y": [v / 100 for v in x], "name": "widest", "colour": "text"})
    axis = {"title": "half-width", "unit": "points"}
    heads, rows, left = numbers(figure_of({"title": "calls"}, axis, lines))
    assert heads == ["calls", "widest", "t<0>", "t<1>", "t<2>", "t<3>", "t<4>"]
    assert left == 4
    assert (rows[0][0], rows[-1][0], len(rows)) == ("0", "100", 10)
    assert rows[-1][1:3] == ["100.00\u202fpoints", "0.00\u202fpoints"]


def test_percent_is_one_rule_and_a_promise_is_rounded_down():
    from adaptive_vtt.results.view.pages import at_least
    from adaptive_vtt.utils.figures import percent

    shares = (0.123, 0.00052, 0.0, 1, -0.0, float("nan"), None)
    assert [*map(percent, shares)] == ["12.3 %", "0.05 %", "0 %", "100 %", "0 %", "–", "–"]
    assert at_least(0.0567) == "5.6 %"
    assert at_least(0.95) == "95.0 %"


def test_long_names_are_cut_in_the_middle_and_keep_their_end():
    name = "relation medmnistc/pathmnist/brightness_down severity 3"
    assert shorten(name, 24) == "relation…down severity 3"
    assert [len(shorten(name, most)) for most in range(len(name) + 2)] == [
        *range(len(name) + 1),
        len(name),
    ]
