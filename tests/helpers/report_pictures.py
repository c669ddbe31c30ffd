"""Take the pictures of docs/images, all of one report.

avtt audit --demo --half-width 0.05 --targets overall,relations --set audit.seed=0 --out runs/demo
python -m tests.helpers.report_pictures runs/demo docs/images
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from tests.helpers.chromium import Browser

COLOURS = 200
SCREEN = (1280, 880)
NARROW = (900, 1000)
FAILURE = (1280, 790)
SHOWN = "rotation"
"""The change of the failure that is opened."""
FIGURES = {
    "surface": "#surface-chart",
    "curves": "#curves-chart",
    "widths": "#widths-chart",
}
"""File -> the part of the page that it shows."""


def main(run: Path, out: Path) -> None:
    page = (run / "report.html").resolve().as_uri()
    with TemporaryDirectory() as profile, Browser(Path(profile), *SCREEN) as browser:
        load(browser, page)
        browser.screenshot(out / "report.png")
        browser.resize(*NARROW)
        for name, chosen in FIGURES.items():
            figure(browser, chosen)
            browser.screenshot(out / f"{name}.png", chosen)
        browser.resize(*FAILURE)
        cards = f"""document.querySelectorAll('a[aria-label*="{SHOWN}"]')"""
        browser.value(f"scrollTo(0, 0); location.hash = {cards}[0].hash; pause(800)")
        browser.screenshot(out / "failure.png")
    for name in ("report", "failure", *FIGURES):
        small(out / f"{name}.png")


def load(browser: Browser, page: str) -> None:
    """Open a report without scroll bars; leave a function ``pause(milliseconds)``."""
    browser.open(page)
    browser.until("document.readyState === 'complete' && typeof avtt === 'object'")
    browser.value("window.pause = (time) => new Promise((done) => setTimeout(done, time)); null")
    browser.value("document.documentElement.style.scrollbarWidth = 'none'; pause(500)")


def figure(browser: Browser, chosen: str) -> None:
    """Draw a figure, which may be folded away, in the middle of the window."""
    at = f"document.querySelector('{chosen}')"
    middle = f"{at}.scrollIntoView({{ behavior: 'instant', block: 'center' }})"
    browser.value(f"{at}.closest('details')?.setAttribute('open', ''); {middle}")
    browser.until(f"{at}.dataset.drawn")
    browser.value(f"pause(800).then(() => {middle}).then(() => pause(300))")


def small(path: Path) -> None:
    """Reduce a picture to few colours, a third of its size."""
    with Image.open(path) as image:
        few = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
