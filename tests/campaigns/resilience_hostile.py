"""Audits under a cap, against a server with all kinds of bad replies."""

import json
import math
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adaptive_vtt.experiments.engine.killed_audits import served
from adaptive_vtt.experiments.program import Row

from . import resilience_audits as audits
from .resilience_audits import ASKED, Ended, Kind
from .resilience_kills import row
from .resilience_server import ATTACKS, USAGE, Attack, serve

PRICES = (2.5, 10.0)
"""Per million tokens sent and answered."""
BOUND = (400, 32)
"""Declared most tokens of one attempt."""
RETRIES, FLIGHT, BUDGET = 1, 4, 24
MAX_MEGABYTES = 400.0
"""An audit under attack may take so much more than one of an honest server."""
HONEST = sum(count * price for count, price in zip(USAGE, PRICES, strict=True)) / 1e6
WORST = sum(count * price for count, price in zip(BOUND, PRICES, strict=True)) / 1e6
STAPLES = ("count below zero", "gzip bomb", "redirect 307")
"""Attacks that a quick campaign tries, too."""
MUTE = "more than half, so nothing is certified"
"""Part of the sentence that ends an audit most of whose calls stay unanswered."""
CAP = 12 * WORST
"""Money for a dozen attempts, of the two dozen calls the audit would make."""


def kind(name: str, url: str) -> Kind:
    """Return the audit of a chat model, or of a service with plain JSON."""
    own = {
        "openai": [
            'kind = "openai"',
            f'url = "{url}/v1"',
            'model = "m"',
            'yes_from = "words"',
            f"max_input_tokens = {BOUND[0]}",
            f"max_tokens = {BOUND[1]}",
        ],
        "http": [
            'kind = "http"',
            f'url = "{url}/predict"',
            'request = {image = "{image_base64}"}',
            'response = "scores"',
            'input_tokens = "in"',
            'output_tokens = "out"',
            f"most_input_tokens = {BOUND[0]}",
            f"most_output_tokens = {BOUND[1]}",
        ],
    }
    shared = [
        f"price_input = {PRICES[0]}",
        f"price_output = {PRICES[1]}",
        f"retries = {RETRIES}",
        f"in_flight = {FLIGHT}",
        "timeout = 2.0",
    ]
    return Kind(name, "\n".join([*own[name], *shared]), logs=False, audit=f"max_cost = {CAP}")


def hostile(folder: Path, every: int) -> list[Row]:
    """Try every ``every``-th attack, and the usual ones, against both kinds of endpoint."""
    found: list[tuple[Attack, str, Row]] = []
    with served(serve) as url:
        for name in ("openai", "http"):
            spec = audits.write_folder(folder / "hostile", kind(name, url), budget=BUDGET)
            for number in chosen(every):
                run = folder / f"hostile-{name}-{number}"
                found.append((ATTACKS[number], name, one(spec, run, url, number)))
    return summary(found)


def chosen(every: int) -> list[int]:
    """Return the numbers of the attacks to try, at least the first."""
    return [
        number
        for number, attack in enumerate(ATTACKS)
        if number % every == 0 or (attack.name in STAPLES and every < len(ATTACKS))
    ]


def one(spec: Path, run: Path, url: str, number: int) -> Row:
    """Run one audit under one attack, and return figures of both sides."""
    counts(url, number)
    ended = audits.ran(["audit", str(spec), "--out", str(run)], **{ASKED: str(run) + ".log"})
    said = counts(url)
    stood = read(run / "result.json")
    return {
        **said,
        "ended": ended,
        "cost": stood.get("cost", math.nan),
        "finished": ended.code == 0 and "cost" in stood,
        "silent": ended.code == 2 and MUTE in ended.said,
    }


def read(path: Path) -> Row:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def counts(url: str, attack: int | None = None) -> Row:
    """Return the counts of the server; a number selects the next attack."""
    path = "/counts" if attack is None else f"/counts/{attack}"
    with urllib.request.urlopen(url + path, timeout=10) as reply:
        return dict(json.load(reply))


def summary(found: Sequence[tuple[Attack, str, Row]]) -> list[Row]:
    """Return a row per promise, with the attacks that broke it."""
    went_on = [(a, n, r) for a, n, r in found if not a.hopeless]
    lent = [(a, n, r) for a, n, r in found if a.name.startswith("redirect")]
    return [
        checked("hostile replies: the cap holds", found, over),
        checked(
            "hostile replies: the audit goes on, or ends as most calls stay unanswered",
            went_on,
            lambda _, r: not (r["finished"] or r["silent"]),
        ),
        checked("hostile replies: one sentence, no traceback, no hang", found, broke),
        checked(
            f"hostile replies: below {MAX_MEGABYTES:g} MB more than an honest server",
            found,
            lambda _, r: r["ended"].megabytes > _usual(found) + MAX_MEGABYTES,
        ),
        checked("redirects: nothing reaches another origin", lent, lambda _, r: r["followed"] > 0),
    ]


def checked(what: str, found: Sequence[tuple[Attack, str, Row]], lost: Any) -> Row:
    bad = [f"{name}: {attack.name}" for attack, name, run in found if lost(attack, run)]
    return row(what, len(found), len(bad), "; ".join(bad))


def over(attack: Attack, run: Row) -> bool:
    """Return whether more than the cap was spent, by the server's bill or by the audit's.

    Counts above the declared bound are billed as counted. So only the calls that are on their way
    at the first such count may exceed the cap.
    """
    if attack.above:
        return bool(run["attacked"] > FLIGHT * (RETRIES + 1) and run["cost"] > CAP)
    cost = run["cost"] if run["finished"] else 0.0
    bad = not math.isfinite(cost) or cost < 0 or cost > CAP * (1 + 1e-9)
    return bool(bad or run["billed"] * HONEST > CAP)


def broke(attack: Attack, run: Row) -> bool:
    ended: Ended = run["ended"]
    return ended.crashed or ended.hung


def _usual(found: Sequence[tuple[Attack, str, Row]]) -> float:
    """Return the usual megabytes of an audit, the median of all."""
    sizes = sorted(run["ended"].megabytes for _, _, run in found)
    return float(sizes[len(sizes) // 2])
