"""Questions made from boxes, columns and roles; what is asked is true, and no answer gives itself
away by its place."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt.datasets import from_table
from adaptive_vtt.datasets.formats.endobench import from_endobench
from adaptive_vtt.datasets.table import TableDataset
from adaptive_vtt.datasets.vqa.question_making import MANY, ORDERED, choose, places, reaches
from adaptive_vtt.datasets.vqa.question_table import write_questions
from adaptive_vtt.errors import InputError
from adaptive_vtt.relations.visual_prompts import COLOURS
from adaptive_vtt.types import Box
from tests.helpers.built_questions import build

SIZE = (120, 150)


def boxed(count=18):
    """Photographs with many red cells, one or two white ones, and a thin one in every second."""
    boxes, truths, images = [], [], []
    for index in range(count):
        rng = np.random.default_rng(index)
        numbers = {"red": 6 + index % 9, "white": 1 + index % 2, "thin": index % 2}
        grid = iter(rng.permutation(20))
        mine = []
        for name, number in numbers.items():
            for _ in range(number):
                row, column = divmod(int(next(grid)), 5)
                mine.append(
                    Box(name, column * 30 + 4, row * 30 + 4, column * 30 + 24, row * 30 + 24)
                )
        boxes.append(mine)
        truths.append([int(numbers[name] > 0) for name in numbers])
        images.append(rng.integers(90, 250, (*SIZE, 3), dtype=np.uint8))
    return TableDataset(
        images,
        np.array(truths, np.int8),
        [f"cell{k}" for k in range(count)],
        ["red", "white", "thin"],
        boxes=boxes,
        name="cells",
    )


@pytest.fixture(scope="module")
def cells():
    return boxed()


@pytest.fixture(scope="module")
def built(cells):
    return build(cells, seed=3)


def sample_of(cells, one):
    return cells.sample(int(one.sample_id.removeprefix("cell")))


def numbers(sample):
    return Counter(box.label for box in sample.boxes)


def test_counts_are_those_of_the_boxes(cells, built):
    counting = [one for one in built if one.kind == "counting"]
    assert counting
    for one in counting:
        subject = one.about.partition(",")[0]
        number = numbers(sample_of(cells, one))[subject]
        right = one.made.options[one.made.right]
        assert one.made.options == MANY
        assert right == MANY[min(number, 5)]


def test_several_regions_are_marked_and_one_colour_asked_about(cells, built):
    result = [one for one in built if one.kind == "multi"]
    assert result
    for one in result:
        assert one.made.subtask == "Multi-region Recognition"
        (asked,) = [c for c in COLOURS if f"the {c} box" in one.made.question]
        drawn = {c: (one.made.image == COLOURS[c]).all(axis=2) for c in COLOURS}
        there = {c for c, mask in drawn.items() if mask.sum() > 20}
        assert asked in there
        assert 2 <= len(there) <= 4
        rows, columns = np.nonzero(drawn[asked])
        middle = (columns.min() + columns.max()) / 2, (rows.min() + rows.max()) / 2
        named = [
            b.label
            for b in sample_of(cells, one).boxes
            if b.left < middle[0] < b.right and b.top < middle[1] < b.bottom
        ]
        assert named == [one.made.options[one.made.right]]


def test_wrong_names_are_not_in_the_box(cells, built):
    for one in built:
        if one.kind in ("box", "coordinate"):
            sample = sample_of(cells, one)
            region = places(sample, one.about)[0]
            wrong = set(one.made.options) - {one.about}
            assert wrong
            assert not any(reaches(sample, name, region) for name in wrong)


def test_right_answers_stand_everywhere_equally_often(built):
    places_of: dict[tuple[str, int], Counter[int]] = {}
    for one in built:
        if one.kind not in ORDERED:
            key = one.kind, len(one.made.options)
            places_of.setdefault(key, Counter())[one.made.right] += 1
    assert places_of
    for (_, options), result in places_of.items():
        there = [result[place] for place in range(options)]
        assert max(there) - min(there) <= 1


# -- roles -------------------------------------------------------------------------------


def table(count=24):
    images = [np.full((20, 20, 3), 10 * k, np.uint8) for k in range(count)]
    labels = {
        "polyp": [int(k % 4 == 0) for k in range(count)],
        "ulcer": [int(k % 4 == 1) for k in range(count)],
        "snare": [int(k % 3 == 0) for k in range(count)],
        "cecum": [int(k % 2) for k in range(count)],
        "ileum": [int(k % 2 == 0) for k in range(count)],
    }
    ids = [f"s{k}" for k in range(count)]
    return from_table(images, pd.DataFrame(labels, index=ids))


def test_what_cannot_be_used_is_named():
    odd = table()
    with pytest.raises(InputError, match=r"unknown role 'lession'; did you mean 'lesion'"):
        build(odd, roles={"polyp": "lession"})
    with pytest.raises(
        InputError, match="expected another word for each concept, got 'sore' twice"
    ):
        build(odd, words={"polyp": "sore", "ulcer": "sore"})
    with pytest.raises(InputError, match="at least 1 question per class, got 0"):
        build(odd, per_class=0)


def test_nothing_is_counted_where_no_number_is_known():
    """Else every answer would be 0, as only absence is known."""
    assert build(table(), ["counting"]) == []


# -- where things are ---------------------------------------------------------------------


def test_golden_lines(tmp_path):
    """What a table says, cell by cell; a change of it is a change of built sets."""
    chosen = choose(boxed(3), per_class=1, seed=5)
    write_questions(
        tmp_path / "q.tsv", (replace(one.made, scene="GS", dataset="cells") for one in chosen)
    )
    lines = pd.read_csv(tmp_path / "q.tsv", sep="\t", dtype=str, keep_default_na=False)
    assert " ".join(lines.columns) == (
        "index image image_path question category task subtask scene answer dataset gt A B C D E F"
    )
    assert lines["image"].str.startswith("/9j/").all()
    golden = Path(__file__).parents[1] / "golden" / "built_questions.json"
    result = lines.drop(columns="image").to_dict("records")
    assert result == json.loads(golden.read_text(encoding="utf-8"))
    assert len(from_endobench(tmp_path / "q.tsv")) == len(result)
