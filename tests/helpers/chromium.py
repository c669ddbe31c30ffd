"""A headless Chromium that is driven over its debugging pipe, without a further driver."""

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Self

import pytest

FLAGS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--remote-debugging-pipe"
)
needs_chromium = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")


class Browser:
    """Browser with one page.

    Attributes:
        complaints: Warnings and errors of its console, and exceptions.
    """

    def __init__(self, profile: Path, width: int = 1280, height: int = 900) -> None:
        self.complaints: list[str] = []
        self._number, self._session = 0, ""
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        command = (
            f"exec chromium {FLAGS} --user-data-dir='{profile}' 3<&{theirs_in} 4>&{theirs_out}"
        )
        self._process = subprocess.Popen(
            ["bash", "-c", command], pass_fds=(theirs_in, theirs_out), stderr=subprocess.DEVNULL
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._rest = b""
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self._ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._ask(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._ask("Emulation.setDeviceMetricsOverride", **size)

    def scheme(self, name: str) -> None:
        """Set the preferred colour scheme, "light" or "dark"."""
        feature = {"name": "prefers-color-scheme", "value": name}
        self._ask("Emulation.setEmulatedMedia", features=[feature])

    def open(self, url: str, before: str = "") -> None:
        """Open a page, with the JavaScript ``before`` run before its own."""
        self._ask("Page.addScriptToEvaluateOnNewDocument", source=before)
        self._ask("Page.navigate", url=url)

    def value(self, expression: str) -> Any:
        """Return the value of a JavaScript expression, or of its promise."""
        how = {"returnByValue": True, "awaitPromise": True}
        evaluated = self._ask("Runtime.evaluate", expression=expression, **how)
        assert "exceptionDetails" not in evaluated, evaluated
        return evaluated["result"].get("value")

    def until(self, expression: str, seconds: float = 90.0) -> Any:
        """Return the expression's value as soon as it is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.value(expression):
                return value
            time.sleep(0.05)
        raise AssertionError(f"{expression}: not within {seconds} s; complaints {self.complaints}")

    def mouse(self, *path: tuple[float, float], press: bool = True, hold: bool = False) -> None:
        """Move the mouse along points of the window.

        ``press`` clicks at the end, or with ``hold`` presses at the start and releases at the end.
        """
        down: dict[str, Any] = {"button": "left", "clickCount": 1}
        for k, (x, y) in enumerate(path):
            self._mouse("mouseMoved", x, y, **(down if hold and k else {}))
            if press and k == (0 if hold else len(path) - 1):
                self._mouse("mousePressed", x, y, **down)
        if press:
            self._mouse("mouseReleased", *path[-1], **down)

    def _mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self._ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def screenshot(self, path: Path, of: str | None = None) -> None:
        """Write a picture of the window, or of the first element of the selector ``of``."""
        part: dict[str, Any] = {}
        if of is not None:
            box = f"document.querySelector({json.dumps(of)}).getBoundingClientRect()"
            corner = "b.left + scrollX, b.top + scrollY"
            sides = self.value(f"((b) => [{corner}, b.width, b.height])({box})")
            part = {"clip": dict(zip(("x", "y", "width", "height"), sides, strict=True))}
            part["clip"]["scale"] = 1
        path.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot", **part)["data"]))

    def _ask(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        request: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            request["sessionId"] = self._session
        os.write(self._out, json.dumps(request).encode() + b"\0")
        while True:
            received = self._receive()
            if received.get("id") == self._number:
                assert "error" not in received, received
                return received["result"]
            self._note(received)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._in, 1 << 16)
            assert part, "Chromium ended"
            self._rest += part
        message, self._rest = self._rest.split(b"\0", 1)
        return dict(json.loads(message))

    def _note(self, received: dict[str, Any]) -> None:
        method, given = received.get("method"), received.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(given["exceptionDetails"]))
        if method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(given["args"]))
        if method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.complaints.append(json.dumps(given["entry"]))
