"""Programs that speak JSON lines, and torch modules that need more memory than there is."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.models import Answer, Prompt, SubprocessModel, TorchModel, Unanswered
from adaptive_vtt.models.checking import checked
from adaptive_vtt.types import Ask
from adaptive_vtt.utils.random_streams import generator
from tests.helpers.left_open import left, opened

IMAGES = generator(0, "lines").integers(0, 256, (3, 5, 4, 3), dtype=np.uint8)
PROMPTS = [Prompt(image, ("a", "b"), f"s{i}", "identity", 0) for i, image in enumerate(IMAGES)]

LOOP = """
import base64, json, os, sys, time
{setup}
for line in sys.stdin:
    q = json.loads(line)
    answer = {answer}
    print(answer if isinstance(answer, str) else json.dumps(answer), flush=True)
"""


def test_a_model_that_is_dropped_ends_its_program(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(LOOP.format(answer='{"values": [0.5, 0.5]}', setup=""))
    before = opened()
    model = SubprocessModel([sys.executable, str(path)])
    checked(model, PROMPTS)
    assert any(one.startswith("process") for one in opened() - before)
    del model
    assert left(before) == []


@pytest.fixture
def program(tmp_path: Path) -> Any:
    """Makes models of programs that answer each question ``q`` by a Python expression."""
    made: list[SubprocessModel] = []

    def make(answer: str, setup: str = "", **options: Any) -> SubprocessModel:
        path = tmp_path / "model.py"
        path.write_text(LOOP.format(answer=answer, setup=setup))
        made.append(
            SubprocessModel([sys.executable, "-S", "model.py"], directory=tmp_path, **options)
        )
        return made[-1]

    yield make
    for model in made:
        model.close()


Make = Callable[..., SubprocessModel]


def test_a_program_is_asked_line_by_line(program: Make) -> None:
    model = program(
        '{"values": [q["image"].startswith("iVBOR"), n / 10], "cost": 0.5, "n": (n := n + 1)}',
        setup="n = 1",
    )
    assert checked(model, PROMPTS) == [Answer((1.0, n / 10), 0.5) for n in (1, 2, 3)]


def test_a_program_is_told_image_concepts_and_questions_alone(program: Make) -> None:
    model = program('{"values": [json.dumps(q)]}', answers="one")
    prompt = Prompt(None, ("organ",), "secret", "rotation", 3, (Ask("Which?", ("x", "y")),))
    answer = checked(model, [prompt])[0]
    assert isinstance(answer, Answer)
    assert json.loads(str(answer.values[0])) == {
        "image": None,
        "concepts": ["organ"],
        "asks": [{"text": "Which?", "options": ["x", "y"]}],
        "words": "",
    }
    assert model.answers == "one"


def test_a_program_may_leave_questions_unanswered(program: Make) -> None:
    model = program('{"values": [None, {"unanswered": "dark"}]}')
    assert checked(model, PROMPTS[:1]) == [Answer((Unanswered("no answer"), Unanswered("dark")))]
    model = program('{"unanswered": "too dark", "cost": 2}')
    assert checked(model, PROMPTS[:1]) == [Unanswered("too dark", 2.0)]


def test_a_program_may_give_masks(program: Make) -> None:
    model = program('{"values": [{"mask": q["image"]}] * 2}')
    white = np.zeros((5, 4, 1), np.uint8)
    white[2:, 1:] = 255
    answer = checked(model, [Prompt(white, ("a", "b"), "s", "identity", 0)])[0]
    assert isinstance(answer, Answer)
    for mask in answer.values:
        assert np.array_equal(mask, white[:, :, 0] > 0)


@pytest.mark.slow
def test_a_program_that_hangs_is_ended_and_started_again(program: Make) -> None:
    hangs = "time.sleep(30) if not os.path.exists('once') and not open('once', 'w').close() else 0"
    model = program(f'({hangs}, {{"values": [0.5, 0.5]}})[1]', timeout=2)
    assert checked(model, PROMPTS[:2]) == [Unanswered("timeout"), Answer((0.5, 0.5))]


def test_a_program_that_does_not_read_is_ended(program: Make) -> None:
    noise = generator(0, "large").integers(0, 256, (300, 300, 3), dtype=np.uint8)
    model = program("0", setup="time.sleep(30)", timeout=0.3)
    assert model.ask([Prompt(noise, ("a",), "s", "identity", 0)]) == [Unanswered("timeout")]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            "[].pop()",
            r"'m' asked about sample 's0': the program ended with code 1: IndexError: pop",
        ),
        ("sys.exit(3)", r"the program ended with code 3$"),
        ("'hello'", r"expected one line of JSON with 'values' or 'unanswered', got 'hello'"),
        ("{'value': 1}", r"expected one line of JSON .* got '\{\"value\": 1\}'"),
        ("[0.5, 0.5]", r"expected one line of JSON"),
        ("{'values': [{'mask': 'AAAA'}, 0]}", r"expected one line of JSON"),
        ("{'values': [0.5]}", r"expected 2 values \(one per concept\), got 1"),
    ],
)
def test_programs_that_fail_are_quoted(program: Make, answer: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        checked(program(answer, name="m"), PROMPTS[:1])


NEXT = "open('seen', 'a').write('.') and os.path.getsize('seen') % 2"


@pytest.mark.parametrize(
    "line",
    [
        "'hello'",
        "'{\"values\": [NaN, 0.5]}'",
        "'{\"values\": [1e999, 0]}'",
        "'[' * 100000",
        '\'{"values": [0.5, 0.5], "cost": -5}\'',
        '\'{"values": [0.5, 0.5], "cost": NaN}\'',
        "'{\"values\": [' + '1' * 5000 + ', 0]}'",
        "'x' * 5000000",
        "'{\"values\": [0.5]}'",
    ],
)
def test_after_a_good_line_a_malformed_one_leaves_its_question_unanswered(
    program: Make, line: str
) -> None:
    good = '{"values": [0.5, 0.5]}'
    model = program(f"{good} if {NEXT} else {line}", max_reply_bytes=100_000)
    answers = checked(model, [*PROMPTS, PROMPTS[0]])
    assert answers == [Answer((0.5, 0.5)), Unanswered("malformed reply")] * 2


def test_programs_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match=r"cannot start '/no/such/program': No such file"):
        SubprocessModel("/no/such/program --fast").ask(PROMPTS)
    with pytest.raises(InputError, match=r"model.command: expected a program, got nothing"):
        SubprocessModel("")


# -- memory --------------------------------------------------------------------------------


class Hungry(nn.Module):
    """Means of images; out of memory for more than ``fits`` of them."""

    def __init__(self, fits: int) -> None:
        super().__init__()
        self.fits = fits
        self.batches: list[int] = []

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.batches.append(len(images))
        if len(images) > self.fits:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return images.mean(dim=(2, 3))[:, :2]


def test_batches_that_do_not_fit_are_halved_for_good() -> None:
    hungry = Hungry(fits=3)
    model = TorchModel(hungry, device="cpu", batch_size=16)
    prompts = [PROMPTS[i % 3] for i in range(10)]
    answers = [a.values for a in checked(model, prompts) if isinstance(a, Answer)]
    means = IMAGES.mean((1, 2))[[i % 3 for i in range(10)], :2] / 255
    assert np.allclose(np.array(answers, float), 1 / (1 + np.exp(-means)), atol=1e-6)
    assert hungry.batches == [10, 5, 2, 2, 2, 2, 2]
    assert model.batch_size == 2


def test_one_image_that_does_not_fit_ends_the_audit() -> None:
    with pytest.raises(ModelError, match="raised OutOfMemoryError: CUDA out of memory"):
        checked(TorchModel(Hungry(fits=0), device="cpu"), PROMPTS)
