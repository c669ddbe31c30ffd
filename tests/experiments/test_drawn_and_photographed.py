"""Drawn scenes and photographs as the same thing: images of one size with boxes."""

from pathlib import Path

import pytest

from adaptive_vtt.experiments.reic import drawn_and_photographed as experiment


@pytest.mark.slow
def test_without_photographs_drawn_scenes_are_measured_and_the_rest_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    experiment.main(["--count", "2", "--out", str(tmp_path)])
    output = capsys.readouterr().out
    assert "photographs: skipped" in output
    assert "https://github.com/Shenggan/BCCD_Dataset" in output
    assert "retained" in (tmp_path / "drawn_and_photographed.csv").read_text()
