"""The report of odd and of hostile audits is a whole page all the same."""

import re
from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptive_vtt as avtt
from adaptive_vtt.errors import JournalError
from adaptive_vtt.journal import Journal, MemoryJournal
from adaptive_vtt.results.report import render
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Answer, Unanswered
from tests.helpers.report_pages import CERTIFIED, EVIL, FEW, FOLDED, Tags, audit, block, unfinished


def run(dataset: Any = None, refuse: float = 0.0, answers: Any = "all", **options: Any) -> Journal:
    options = {"budget": 20, "surrogate": False, "relations": FEW, **options}
    relations = options.pop("relations")
    model = ScriptedModel(refuse=refuse, answers=answers)
    return audit(dataset or tiny_dataset(), model, relations, fail_on_error=1.0, **options)


WITHOUT_MASKS = [name for name in avtt.relations.names() if not name.startswith("prompt/")]
WIDE: dict[str, Any] = {"half_width": 0.1}
AUDITS: dict[str, Callable[[], Journal]] = {
    "nothing asked": lambda: unfinished(0),
    "nothing answered": lambda: unfinished(3),
    "some refused": lambda: run(refuse=0.2, relations=WITHOUT_MASKS, budget=40),
    "all refused": lambda: run(refuse=1.0, budget=6),
    "one concept, one relation": lambda: run(tiny_dataset(concepts=1), relations=["identity"]),
    "no pictures": lambda: run(tiny_dataset(images=False), budget=6),
    "certifying, nothing asked": lambda: unfinished(0, **WIDE),
    "certifying, nothing answered": lambda: unfinished(3, at_most=0.2),
    "certifying, all refused": lambda: run(refuse=1.0, unanswered="both", **WIDE),
    "certifying, 100 targets": lambda: run(
        tiny_dataset(concepts=50), budget=5, targets=["concepts"], **WIDE
    ),
    "certifying, everything asked": lambda: run(
        tiny_dataset(4), answers="one", relations=["identity"], half_width=0.01, at_most=0.4
    ),
}
SLOW = [
    name
    for name in AUDITS
    if name in ("some refused", "one concept, one relation") or name.startswith("certifying")
]


@pytest.mark.filterwarnings("error", "ignore:.torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in AUDITS],
)
def test_odd_audits_have_a_whole_page(name: str) -> None:
    page = render(AUDITS[name]())
    tags, known = Tags(page), "nothing" not in name
    if name.startswith("certifying"):
        there = [s for s in CERTIFIED if known or s != "conditions"]
        assert [a["id"] for t, a in tags.tags if t == "section"] == there
        assert tags.with_id("derived")
        block(page, "widths-chart-data")
    else:
        assert all(tags.with_id(id) for id in ("verdict", "failures", *FOLDED))
        assert tags.with_id("conditions") == known
        for id in ("failures-data", "pictures", "beliefs-data", "uncertainty-chart-data"):
            block(page, id)
    assert page.rstrip().endswith("</html>")
    assert not re.search(r"\bnan\b|\bNone\b", tags.text)


def test_unfinished_certified_audit_says_what_is_open() -> None:
    text = Tags(render(unfinished(3, half_width=0.1, targets=["concepts"]))).text
    assert "Still running" in text
    assert "0 of 6 targets are certified to ±10 points." in text
    assert "Nothing is known yet" in text
    assert "0 to 100 %" in text
    text = Tags(render(unfinished(3, at_most=0.1, targets=["overall"]))).text
    assert "overall label error is not yet decided against 10 %." in text


def test_journal_without_an_audit_is_refused() -> None:
    with pytest.raises(JournalError, match="no audit was begun"):
        render(MemoryJournal())


# -- hostile text ---------------------------------------------------------------------------


class Hostile(ScriptedModel):
    """Refuses with a reason that would like to be a script."""

    def ask(self, prompts: Any) -> list[Answer | Unanswered]:
        answers = super().ask(prompts)
        return [Unanswered(EVIL) if isinstance(a, Unanswered) else a for a in answers]


def hostile_journal(surrogate: bool = False) -> Journal:
    concepts = [EVIL, "</script><img src=x onerror=alert(2)>", "a & 'b' \"c\" {{ 7*7 }} \u2028"]
    labels = pd.DataFrame([[0, 1, 0], [1, 0, 1]] * 8, columns=concepts)
    labels.index = [f"<b>{EVIL}{i}" for i in range(16)]
    images = np.random.default_rng(0).integers(0, 256, (16, 8, 8, 3), dtype=np.uint8)
    dataset = avtt.datasets.from_table(images, labels, name=f"</title>{EVIL}")
    model = Hostile(answers="one", refuse=0.3)
    model.name = f"--><svg onload=alert(3)>{EVIL}"
    where = {f"where {EVIL} %{{y}}": {"truth": [1]}}
    targets = ["concepts", "relations", *where]
    certified = {"half_width": 0.1, "targets": targets, "where": where}
    return audit(dataset, model, budget=40, surrogate=surrogate, **certified)


@pytest.mark.slow
def test_hostile_text_stays_text() -> None:
    page = render(hostile_journal())
    tags = Tags(page)
    assert "<script>alert" not in page
    assert not any(tag == "svg" and "onload" in a for tag, a in tags.tags)
    assert not any(name.startswith("on") for _, a in tags.tags for name in a)
    assert EVIL in tags.text
    assert "{{ 7*7 }}" in tags.text
    for id in ("beliefs-data", "uncertainty-chart-data", "map-data"):
        block(page, id)
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)
    assert not any(EVIL in script for script in scripts)
    names = [t["name"] for t in block(page, "widths-chart-data")["linear"]["data"]]
    assert any(
        f"{escape(EVIL)} %&#123;y}}" in name for name in names
    )  # Plotly shows what stands there as HTML
    assert not any("<" in name for name in names)
