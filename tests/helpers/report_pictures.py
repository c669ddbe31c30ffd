"""Take the pictures of docs/images that show single figures of a report.

avtt audit --demo --half-width 0.1 --seed 0 --out RUN
python -m tests.helpers.report_pictures RUN docs/images
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from tests.helpers.chromium import Browser

COLOURS = 200
WIDTH, HEIGHT = 900, 1000
PICTURES = {
    "surface": "#surface-chart",
    "curves": "#curves-chart",
    "widths": "#widths-chart",
}
"""File -> the part of the page that it shows."""


def main(run: Path, out: Path) -> None:
    with TemporaryDirectory() as profile, Browser(Path(profile), WIDTH, HEIGHT) as browser:
        browser.open((run / "report.html").resolve().as_uri())
        browser.until("document.readyState === 'complete' && typeof avtt === 'object'")
        browser.value(
            "window.pause = (time) => new Promise((done) => setTimeout(done, time)); null"
        )
        for name, chosen in PICTURES.items():
            at = f"document.querySelector('{chosen}')"
            browser.value(f"{at}.scrollIntoView({{ behavior: 'instant', block: 'center' }})")
            if chosen.endswith("chart"):
                browser.until(f"{at}.dataset.drawn")
            browser.value("pause(800)")
            browser.value(
                f"{at}.scrollIntoView({{ behavior: 'instant', block: 'center' }}); pause(300)"
            )
            browser.screenshot(out / f"{name}.png", chosen)
            small(out / f"{name}.png")


def small(path: Path) -> None:
    """Reduce a picture to few colours, a third of its size."""
    with Image.open(path) as image:
        few = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
