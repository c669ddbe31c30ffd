"""Audits to report, and readers of report pages."""

import gzip
import json
import re
from base64 import b64decode
from html.parser import HTMLParser
from typing import Any

import adaptive_vtt as avtt
from adaptive_vtt.journal import Journal, MemoryJournal
from adaptive_vtt.testing import ScriptedModel, tiny_dataset

EVIL = "<script>alert(1)</script>"
SECTIONS = ["verdict", "answers", "failures", "believes", "conditions", "appendix"]
"""Sections of a report without a certificate."""
CERTIFIED = ["verdict", "failures", "certified", "believes", "conditions", "cost", "appendix"]
FOLDED = ["counts", "asked", "settings"]


class Tags(HTMLParser):
    """Parser of a page: start tags with attributes, and the text outside of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def with_id(self, id: str) -> bool:
        return any(attributes.get("id") == id for _, attributes in self.tags)


def block(page: str, id: str) -> Any:
    """Return the JSON of the page's script block ``id``."""
    match = re.search(rf'<script type="application/json" id="{id}">(.*?)</script>', page)
    assert match is not None
    return json.loads(match[1])


def unpacked(page: str, id: str) -> Any:
    """Return the JSON of the page's compressed block ``id``."""
    match = re.search(rf'<script type="text/plain" id="{id}">(.*?)</script>', page)
    assert match is not None
    return json.loads(gzip.decompress(b64decode(match[1])))


def spaced(text: str) -> str:
    """Return a text with single spaces, as ``Tags.text`` has them, also for narrow spaces."""
    return " ".join(text.split())


FEW = ["identity", "rotation", "gaussian_noise", "medtest/blood"]


def audit(dataset: Any, model: Any, relations: list[str] = FEW, **options: Any) -> Journal:
    """Run an audit to its end, and return its journal."""
    space = avtt.QuestionSpace(dataset, relations)
    journal = MemoryJournal()
    avtt.Audit(space, model, journal=journal, **options).run()
    return journal


def unfinished(ask: int, **options: Any) -> Journal:
    """Return the journal of an audit with some calls sent and none answered."""
    space, journal = avtt.QuestionSpace(tiny_dataset()), MemoryJournal()
    running = avtt.Audit(space, ScriptedModel(), budget=9, journal=journal, **options)
    if ask:
        running.ask(ask)
    return journal
