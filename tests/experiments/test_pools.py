"""The experiment about guesses in pools."""

import numpy as np
import pytest

from adaptive_vtt.experiments.engine.pools import Regression, Setting, calls, promised, savings


def test_guesses_explain_what_the_setting_says() -> None:
    setting = Setting(rate=0.2, explained=0.3)
    guess, loss = setting.pool(0)
    assert loss.mean() == pytest.approx(0.2, abs=0.02)
    assert guess.var() / (0.2 * 0.8) == pytest.approx(0.3, abs=0.02)
    left = promised(setting, 4)
    assert left["known, by need"] < left["known, even"] == pytest.approx(0.7, abs=0.03)


def test_a_regression_learns_what_a_guess_is_worth() -> None:
    guess, loss = Setting().pool(0)
    regression = Regression(guess)
    assert set(regression.predictions) == {0.5}
    regression.learn([*range(600)], loss)
    assert np.abs(regression.predictions - guess).mean() < 0.03


def test_every_way_ends_and_is_told_beside_what_is_promised() -> None:
    table = savings(Setting(half_width=0.2), 1, 1).set_index("way")
    assert (table["calls"] > 0).all()
    assert table["promised"].notna().tolist() == [False, True, True, False, False]
    assert calls(Setting(half_width=0.2), ("no guess, even", 0)) == table["calls"]["no guess, even"]
