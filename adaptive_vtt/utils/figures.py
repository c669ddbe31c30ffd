"""Texts and plots of rates and intervals, the same in reports, notebooks and on the terminal.

Bounds are rounded outward to three decimals: a bound that is rounded to the nearest value promises
too much half of the time.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ..types import JsonObject

SLACK = 1e-6
"""Rounding error of floating point, in steps of 0.001, that ``outward`` ignores: computed bounds
may be 0.13000000000000003 instead of 0.13."""
POINT = 1e-9
"""Maximum width of the interval of a rate that is known exactly; the rest is rounding."""
EXACT = "exact"
"""Text in place of the interval of an exact rate."""
NEW_OLD, CHANGED_ORIGINAL = "new − old", "changed − original"
"""Differences of error rates: of two models, and of changed and original images."""
MIN_MONEY = 1e-9
"""Units of money that are shown, at least."""
USD = "USD"
"""The currency of prices that say nothing else."""
_SHARES = re.compile(r"\+-(\d*\.?\d+)(?![\d.]| points)")
"""A half-width as a share, in words of a terminal."""
_SIGNS = {USD: "$", "EUR": "€", "GBP": "£"}


def is_exact(lower: float, upper: float) -> bool:
    """Return whether an interval is a single point."""
    return upper - lower <= POINT


def outward(lower: float, upper: float) -> tuple[float, float]:
    """Return an interval rounded outward to three decimals."""
    return math.floor(1000 * lower + SLACK) / 1000, math.ceil(1000 * upper - SLACK) / 1000


def percent(share: float | None, space: str = " ") -> str:
    """Return 0.123 as 12.3 %, small shares with more digits; NaN and None as a dash."""
    if share is None or math.isnan(share):
        return "–"
    small = abs(share)
    digits = 0 if share in (0, 1) else 1 if small >= 0.001 else 2 if small >= 0.0001 else 4
    return f"{100 * share + 0.0:.{digits}f}{space}%"


def estimate_percent(share: float, lower: float, upper: float, space: str = " ") -> str:
    """Return an estimate with one decimal, as its interval has, or an exact one by ``percent``."""
    if math.isnan(share) or is_exact(lower, upper):
        return percent(share, space)
    return f"{tenths(share)}{space}%"


def tenths(share: float) -> str:
    """Return a share in per cent without a sign: 8.5 for 0.085, 0 for 0, 100 for 1."""
    return f"{100 * share + 0.0:.{0 if share in (0, 1) else 1}f}"


def span(lower: float, upper: float, space: str = " ") -> str:
    """Return an interval in per cent, rounded outward: 8.5 to 11.5 %."""
    low, high = map(tenths, outward(lower, upper))
    return f"{low} to {high}{space}%"


def money(value: float, currency: str = USD) -> str:
    """Return a cost in a currency of ISO 4217: $12.50, 12.50 CHF; below ten cents with two
    significant digits, $0.0042."""
    digits = 2
    if MIN_MONEY <= abs(value) < 0.1:
        digits = 1 - math.floor(math.log10(abs(value)))
    whole, cents = f"{value:,.{digits}f}".split(".")
    amount = f"{whole}.{cents.rstrip('0'):0<2}"
    return f"{_SIGNS[currency]}{amount}" if currency in _SIGNS else f"{amount} {currency}"


def in_points(words: str) -> str:
    """Return a text with half-widths in percentage points: "within +-8 points" for "within
    +-0.08"."""
    return _SHARES.sub(lambda share: f"+-{100 * float(share[1]):g} points", words)


def points(half_width: float) -> str:
    """Return a half-width, given as a share, in percentage points: +-8 points."""
    return f"+-{100 * half_width:.3g} points"


def on_page(words: str) -> str:
    """Return a text for the terminal in the form for pages, with ± instead of +-."""
    return words.replace("+-", "±")


def shorten(text: str, most: int) -> str:
    """Return a text of at most ``most`` characters, cut in the middle: names of targets often have
    the same beginning and different ends."""
    if len(text) <= most:
        return text
    end = max(0, 2 * (most - 1) // 3)
    return f"{text[: max(0, most - 1 - end)]}…{text[len(text) - end :]}"[: max(0, most)]


def shown(words: object) -> str:
    """Return a text escaped for a Plotly figure."""
    return escape(str(words), quote=False).replace("%{", "%&#123;")


PALETTE = {
    "page": ("#f5f6f8", "#12151a"),
    "surface": ("#ffffff", "#1a1f26"),
    "raised": ("#eef1f4", "#242b34"),
    "border": ("#d5dbe2", "#36404c"),
    "grid": ("#e4e8ed", "#2b333d"),
    "text": ("#1b2129", "#e7eaee"),
    "muted": ("#555f6b", "#a6b0bc"),
    "accent": ("#0b5fad", "#73b7ff"),
    "bad": ("#b2420a", "#ffa36b"),
    "third": ("#00725a", "#5fd3b3"),
    "band": ("rgba(11, 95, 173, .2)", "rgba(115, 183, 255, .26)"),
    "right-wash": ("rgba(11, 95, 173, .06)", "rgba(115, 183, 255, .07)"),
    "wrong-wash": ("rgba(178, 66, 10, .09)", "rgba(255, 163, 107, .1)"),
    "tag": ("#e3ecf6", "#22364d"),
    "tag-bad": ("#fae6da", "#47301f"),
    "perhaps": ("#ecb796", "#7d4a2b"),
    "least": ("#f0f2f5", "#25292f"),
    "most": ("#9c3403", "#ff9a5c"),
    "most-ink": ("#fefefe", "#1b1008"),
}
"""Purpose -> colours of pages and figures in light and dark mode. Errors are orange, on a scale
from "least" to "most"; undecided targets are "muted"."""
COLOURS = {name: light for name, (light, _) in PALETTE.items()}
"""Purpose -> colour in light mode; a dark page replaces it by the other one."""
ERRORS = [[0, COLOURS["least"]], [1, COLOURS["most"]]]
"""Plotly's colour scale of error rates, none to all."""
SIGNED = [[0, COLOURS["accent"]], [0.5, COLOURS["surface"]], [1, COLOURS["bad"]]]
"""Plotly's colour scale of differences, where above 0 is worse."""


@dataclass(frozen=True)
class Bar:
    """Row of a table or plot: an estimated share or difference of shares with its interval.

    Attributes:
        name: Name of the target.
        estimate: Share in [0, 1] or difference in [-1, 1]; NaN before the first judgement.
        lower: Lower bound of the interval; NaN: there is no interval.
        upper: Upper bound of the interval; NaN: there is no interval.
        done: Whether the interval is as narrow as requested.
        note: Text after the interval.
        signed: Name of the difference, such as NEW_OLD; "" for a share.
    """

    name: str
    estimate: float
    lower: float
    upper: float
    done: bool
    note: str = ""
    signed: str = ""

    @property
    def words(self) -> str:
        """Text of the share and its interval in per cent, or of a difference in points."""
        if math.isnan(self.estimate):
            return "not asked yet"
        sign = "+" if self.signed else ""
        share = estimate_percent(self.estimate, self.lower, self.upper)
        share = f"{100 * self.estimate:+z.1f} points" if self.signed else share
        if math.isnan(self.lower):
            return share
        if is_exact(self.lower, self.upper):
            return f"{share} ({EXACT})"
        low, high = outward(self.lower, self.upper)
        return f"{share} ({100 * low:{sign}.1f} to {100 * high:{sign}.1f})"

    @property
    def colour(self) -> str:
        return COLOURS["accent" if self.done else "muted"]


def table_html(title: str, summary: str, rows: Sequence[Bar], notes: Sequence[str]) -> str:
    """Return HTML with a title, a sentence, a table and notes, for notebooks.

    It has no script and no style sheet; all texts are escaped.
    """
    import pandas as pd

    differences = sorted({bar.signed for bar in rows} - {""})
    columns = ["target", ", ".join(["estimate and interval", *differences]), ""]
    table = pd.DataFrame([(bar.name, bar.words, bar.note) for bar in rows], columns=columns)
    with pd.option_context("display.max_colwidth", None):
        html = table.to_html(index=False, border=0)
    lines = "".join(f"<div>{escape(note)}</div>" for note in notes)
    return f"<div><b>{escape(title)}</b></div><div>{escape(summary)}</div>{html}{lines}"


def figure(title: str, rows: Sequence[Bar]) -> JsonObject:
    """Return the arguments of ``plotly.graph_objects.Figure`` for a dot plot, one row per bar."""
    drawn = list(reversed(rows))  # Plotly draws the first row at the bottom
    reach = [b.upper - b.estimate for b in drawn], [b.estimate - b.lower for b in drawn]
    above, below = ([0.0 if v != v else 100 * v for v in side] for side in reach)
    error = {"type": "data", "symmetric": False, "color": COLOURS["muted"]}
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": [100 * bar.estimate for bar in drawn],
        "y": [shown(bar.name) for bar in drawn],
        "error_x": {**error, "array": above, "arrayminus": below},
        "marker": {"size": 9, "color": [bar.colour for bar in drawn]},
        "text": [bar.words for bar in drawn],
        "hovertemplate": "%{y}: %{text}<extra></extra>",
        "cliponaxis": False,  # draw the whole dot at 0
    }
    # the axis ends 5 % beyond all estimates and intervals
    ends = [abs(v) for bar in rows for v in (bar.estimate, bar.lower, bar.upper) if v == v]
    end = 105 * max([0.01, *ends])
    axis: JsonObject = {"title": {"text": "error (%)"}, "range": [0, end]}
    if signed := next((bar.signed for bar in rows if bar.signed), ""):
        axis = {"title": {"text": f"{signed} (points)"}, "range": [-end, end]}
        axis |= {"zeroline": True, "zerolinecolor": COLOURS["muted"]}
    layout = {
        "template": "plotly_white",
        "title": {"text": shown(title), "font": {"size": 14}},
        "height": 130 + 26 * len(rows),
        "margin": {"t": 60, "b": 60},
        "xaxis": axis,
        # all names, with space between them and dots at 0
        "yaxis": {"automargin": True, "dtick": 1, "ticks": "outside", "tickcolor": "rgba(0,0,0,0)"},
    }
    return {"data": [trace], "layout": layout}
