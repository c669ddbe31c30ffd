"""The process that builds pages: begun apart from the working folder, and again where it ended."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from adaptive_vtt.errors import AvttError
from adaptive_vtt.results.view import watching
from adaptive_vtt.results.view.watching import SAFE, Report, Worker
from tests.helpers.watched import until

ROOT = Path(__file__).parents[2]
CODE = """
import sys
from adaptive_vtt.results.view.watching import Worker
if __name__ == "__main__":
    import os
    print(Worker().do(os.getcwd))
"""


@pytest.mark.slow
def test_files_of_the_working_folder_shadow_no_module_of_its_process(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    for name in ("re", "pickle", "copyreg", "signal", "socket"):  # some were imported before
        (tmp_path / "work" / f"{name}.py").write_text(f"raise SystemExit('the wrong {name}')")
    script = tmp_path / "begins.py"
    script.write_text(CODE)
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path / "work",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == str(tmp_path / "work"), done.stderr


@pytest.mark.slow
def test_its_end_is_reported_with_the_exit_code_and_the_environment_stays() -> None:
    before = os.environ.get(SAFE)
    worker = Worker()
    try:
        with pytest.raises(
            AvttError, match=r"ended before it was done \(exit code 7\); the terminal"
        ):
            worker.do(os._exit, 7)
    finally:
        worker.close()
    assert os.environ.get(SAFE) == before


def test_what_failed_is_tried_again_while_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    now, tries = [0.0], []

    def make() -> Report:
        tries.append(now[0])
        if len(tries) == 1:
            raise AvttError("the process ended")
        return Report(Path(), "head", 7, {})

    monkeypatch.setattr(watching.time, "monotonic", lambda: now[0])
    with ThreadPoolExecutor(1) as pool:
        reports = watching.Latest(make, pool)
        for _ in range(30):
            reports.ask("head")
            until(lambda: not reports.busy)
            now[0] += 1.0
    assert tries == [0.0, 10.0]
    assert reports.failure == ""
    assert reports.value is not None
