"""What tests of audits share."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def undrawn() -> Iterator[None]:
    """Reports hold nothing: to draw one takes half of a short command's time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("adaptive_vtt.results.report.page.render", lambda *_, **__: "a page")
        yield
