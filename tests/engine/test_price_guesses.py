"""Where the price of a call is known from before the first answer."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import QuestionSpace
from adaptive_vtt.datasets import from_endobench, from_table
from adaptive_vtt.experiments.engine.prices import Billed
from adaptive_vtt.models import OpenAIChat
from adaptive_vtt.models import Prices as Table
from adaptive_vtt.models.base import PriceGuess
from adaptive_vtt.models.pair import pair
from adaptive_vtt.relations import Identity
from tests.helpers.endobench_rows import row, write


def chat(prices: Table) -> OpenAIChat:
    return OpenAIChat("m", base_url="http://127.0.0.1:9", prices=prices, max_tokens=80)


def test_the_price_table_makes_the_first_guess():
    guess = chat(Table(per_call=0.01, input=3.0, output=15.0)).price_guess
    assert guess is not None
    assert guess.call == pytest.approx(0.01 + (3.0 * 40 + 15.0 * 10) / 1e6)
    assert (guess.pixel, guess.character) == (3e-6 / 750, 3e-6 / 4)
    assert guess.most_pixels == 1_200_000


@pytest.mark.parametrize(
    "table", [Table(), Table(per_call=0.01), Table(input=3.0), Table(input=0.0, output=15.0)]
)
def test_there_is_no_guess_where_calls_are_not_known_to_differ(table: Table):
    assert chat(table).price_guess is None


def test_a_pair_costs_what_both_models_do():
    a, b = Billed({}), chat(Table(input=3.0, output=15.0))
    a.price_guess = PriceGuess(0.5, 1e-6, 0.0, 100.0)
    assert b.price_guess is not None
    found = pair(a, b).price_guess
    assert found == PriceGuess(
        0.5 + b.price_guess.call, 1e-6 + b.price_guess.pixel, b.price_guess.character, 1_200_000
    )
    flat = chat(Table(per_call=0.25))
    assert pair(a, flat).price_guess == PriceGuess(
        0.5 + flat.most_attempts * 0.25, 1e-6, 0.0, 100.0
    )
    assert pair(flat, flat).price_guess is None
    assert pair(a, chat(Table())).price_guess is None  # nobody knows what half of it costs


def test_sizes_are_read_without_decoding(tmp_path: Path):
    import cv2

    sizes = [(3, 5), (40, 20), (7, 7)]
    paths = [tmp_path / f"{k}.png" for k in range(3)]
    for path, (height, width) in zip(paths, sizes, strict=True):
        cv2.imwrite(str(path), np.zeros((height, width, 3), np.uint8))
    labels = pd.DataFrame({"there": [1, 0, 1]})
    whole = from_table(paths, labels)
    paths[2].write_bytes(b"no image")
    assert whole.pixels(np.array([1, 0, 1])).tolist() == [800, 15, 800]
    assert np.isnan(whole.pixels(np.array([2])))
    arrays = from_table([np.zeros((*size, 3), np.uint8) for size in sizes], labels)
    assert arrays.pixels(np.arange(3)).tolist() == [15, 800, 49]
    assert np.isnan(from_table(None, labels).pixels(np.arange(3))).all()


def test_endobench_tells_pixels_and_words(tmp_path: Path):
    """The pixels of an image that stays in its file, and the characters of question and options."""
    dataset = from_endobench(write(tmp_path / "e.tsv", [row(k) for k in range(3)]))
    height, width, _ = dataset.sample(1).require_image().shape
    assert dataset.pixels(np.array([1, 1])).tolist() == [height * width] * 2
    length = len("What is this (1)?") + len("onetwothreefour")
    assert dataset.characters(np.array([1, 1]), np.array([1, 0])).tolist() == [length, 0]
    assert QuestionSpace(dataset, [Identity()]).dataset.pixels(np.array([1]))[0] == height * width
