"""EndoBench's questions by number and kind."""

import pytest

from adaptive_vtt.datasets.vqa.taxonomy import GRANULARITIES, TASKS, granularity, named


@pytest.mark.parametrize(
    ("subtask", "question", "level"),
    [
        ("Mul", "What is in the {} box?", "multi-box"),
        ("Mul", "What do the {} contours delimit?", "multi-contour"),
        ("Mul", "Which finding is marked in {}?", "multi-region"),
        ("Mul", "Is it the {} box or the {} contour?", "multi-region"),
        ("Box", "What is in the {} bounding box?", "box"),
        ("Coor", "What is in the box [1, 2, 3, 4]?", "image-level"),
    ],
)
def test_granularities_tell_what_is_drawn(subtask, question, level):
    message = question.replace("{}", "green")
    assert granularity("Region Recognition", named(subtask), message) == level


def test_five_granularities_and_four_columns_have_the_same_questions():
    """Each task and column falls into levels, and counts that are known are sums of theirs."""
    result: dict[str, int] = {}
    for task in TASKS:
        for name, short, count in task.subtasks or ((task.name, task.short, task.questions),):
            level = "several" if short == "Mul" else granularity(task.name, name, "")
            result[level] = result.get(level, 0) + count
    several = result.pop("several") + result.pop("multi-box")
    assert result == {level: count for level, count in GRANULARITIES.items() if count}
    assert several == 263 + 433
    assert sum(result.values()) + several == 6832
    names = ["image-level", "box", "contour", "multi-box", "multi-contour"]  # the text's
    assert list(GRANULARITIES) == names
