"""What tests of audits share."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def undrawn() -> Iterator[None]:
    """A report is its journal's head alone: to draw one takes half of a short command's time."""

    def head(source: Any, *_: object, **__: object) -> str:
        return getattr(source, "journal", source).head

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("adaptive_vtt.results.report.page.render", head)
        yield
