"""The words of visual prompts reach every model that takes words."""

import numpy as np
import pandas as pd
import pytest

import adaptive_vtt as avtt
from adaptive_vtt.datasets import from_table
from adaptive_vtt.engine.judge import Judge
from adaptive_vtt.errors import InputError
from adaptive_vtt.models import HttpJson, OpenAIChat
from adaptive_vtt.models.checking import checked
from adaptive_vtt.models.local.python import PythonModel
from adaptive_vtt.models.network.prompt_templates import TEMPLATES, Template
from adaptive_vtt.models.pair import pair
from adaptive_vtt.relations.visual_prompts import relations
from adaptive_vtt.space import WithoutRegion
from adaptive_vtt.testing import ScriptedModel
from adaptive_vtt.types import Prompt
from adaptive_vtt.utils.random_streams import generator
from tests.helpers.loopback import Replies, serving
from tests.models.test_openai_chat import completion

NAMES = [relation.name for relation in relations()]
COUNT = 12
FREE = [TEMPLATES[name] for name in ("zero-shot", "chain-of-thought", "few-shot", "medtest")]
"""Templates of questions without options."""


class Receives(ScriptedModel):
    """Keeps every prompt."""

    takes_words = True

    def __init__(self):
        super().__init__(answers="one")
        self.prompts: list[Prompt] = []

    def ask(self, prompts):
        self.prompts += prompts
        return super().ask(prompts)


def dataset(count=COUNT, without=(), channels=3):
    """Noise of 64 x 80 pixels with a square of 20 somewhere in each, but for those ``without``."""
    rng = generator(0, "visual words")
    images = rng.integers(0, 256, (count, 64, 80, channels), dtype=np.uint8)
    masks = np.zeros((count, 64, 80), bool)
    for k, (y, x) in enumerate(rng.integers(5, 40, (count, 2)).tolist()):
        if k not in without:
            masks[k, y : y + 20, x : x + 20] = True
    labels = pd.DataFrame({"polyp": [1, 0] * (count // 2)}, index=[f"s{k}" for k in range(count)])
    return from_table(images, labels, masks={"polyp": masks})


def prompts(name, data):
    """What is sent about each image under a relation."""
    space = avtt.QuestionSpace(data, [name])
    return [Judge(space, "one").prompt(call) for call in range(len(data))]


@pytest.mark.parametrize("name", NAMES)
def test_every_visual_prompt_is_another_prompt_than_the_plain_image(name):
    data = dataset()
    for plain, made in zip(prompts("identity", data), prompts(name, data), strict=True):
        assert "polyp" not in made.words  # where to look, and not what is there
        for template in FREE:
            assert template.render(plain) != template.render(made)
            assert made.words in template.render(made)


COORDINATES = (
    "Look at the region [5, 5, 25, 25], given as [x1, y1, x2, y2] in pixels from the upper left "
    "corner of this image, which is 80 pixels wide and 64 high."
)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("box", "Look at the region marked by the green bounding box."),
        ("contour", "Look at the region marked by the green contour."),
        ("multi-box", "Look at the regions marked by bounding boxes with letters: A (green)."),
        ("multi-contour", "Look at the regions marked by contours with letters: A (green)."),
        ("coordinates", COORDINATES),
    ],
)
def test_words_name_what_is_drawn_as_it_is_drawn(name, words):
    masks = {"polyp": np.zeros((1, 64, 80), bool)}
    masks["polyp"][0, 5:25, 5:25] = True
    grey = words.replace("green ", "").replace(" (green)", "")  # it has no colours
    for channels, expected in ((3, words), (1, grey)):
        image = np.full((1, 64, 80, channels), 90, np.uint8)
        data = from_table(image, pd.DataFrame({"polyp": [1]}), masks=masks)
        assert prompts(f"prompt/{name}", data)[0].words == expected


def test_words_reach_a_chat_model_and_a_service():
    (prompt, *_) = prompts("prompt/coordinates", dataset(2))
    server = Replies({**completion("Yes"), "scores": [0.5]})
    request = {"q": "{concept}", "hint": "{words}"}
    with (
        serving(server) as url,
        OpenAIChat("m", base_url=f"{url}/v1", yes_from="words") as chat,
        HttpJson(f"{url}/v", request=request, response="scores") as service,
    ):
        checked(chat, [prompt])
        checked(service, [prompt])
    assert prompt.words in server.saw[0]["messages"][0]["content"][1]["text"]
    assert server.saw[1] == {"q": "polyp", "hint": prompt.words}


def test_an_audit_sends_the_words_and_a_pair_sends_them_to_both():
    data, a, b = dataset(4), Receives(), Receives()
    relations = ["identity", "prompt/box", "prompt/coordinates"]
    avtt.Audit(avtt.QuestionSpace(data, relations), a, budget=12).run()
    words = {p.relation: p.words for p in a.prompts}
    assert words["identity"] == ""
    assert "green bounding box" in words["prompt/box"]
    assert "[x1, y1, x2, y2]" in words["prompt/coordinates"]
    both = pair(a, b)
    (made, *_) = prompts("prompt/coordinates", data)
    checked(both, [made])
    assert a.prompts[-1].words == b.prompts[-1].words == made.words != ""
    assert both.takes_words
    assert not pair(a, ScriptedModel(answers="one")).takes_words


def looks(images):
    return np.full((len(images), 1), 0.5)


@pytest.mark.parametrize(
    "model",
    [PythonModel(looks), ScriptedModel(), pair(Receives(), ScriptedModel(answers="one"))],
    ids=["images alone", "own class", "pair"],
)
def test_a_model_that_takes_no_words_is_not_asked_by_words_alone(model):
    space = avtt.QuestionSpace(dataset(4), ["identity", "prompt/coordinates"])
    expected = r"'prompt/coordinates' and model .*: expected a model that takes words, .*leave the"
    with pytest.raises(InputError, match=expected):
        avtt.Audit(space, model)
    drawn = avtt.QuestionSpace(dataset(4), ["identity", "prompt/box", "prompt/multi-contour"])
    avtt.Audit(drawn, model).close()  # what is drawn is seen


def test_a_template_without_a_place_for_words_is_refused():
    template = Template("own", layout="{question}")
    with OpenAIChat("m", base_url="http://127.0.0.1:1/v1", template=template) as model:
        space = avtt.QuestionSpace(dataset(4), ["prompt/box"])
        with pytest.raises(InputError, match=r"got a template without {words}; put {words} where"):
            avtt.Audit(space, model)
        avtt.Audit(avtt.QuestionSpace(dataset(4)), model).close()


def test_images_without_a_region_are_refused_or_left_out_and_counted():
    data = dataset(10, without=(3, 4))
    relations = ["identity", "prompt/box"]
    refused = r"'prompt/box': expected a region .*none in 2 of 10 images, first of sample 's3'; wi"
    with pytest.raises(InputError, match=refused):
        avtt.QuestionSpace(data, relations)
    wrong: WithoutRegion = "skip"
    with pytest.raises(InputError, match=r"unknown value 'skip'.* leave out, refuse"):
        avtt.QuestionSpace(data, relations, without_region=wrong)
    with pytest.raises(InputError, match=r"none in 4 of 4 images.*; give the dataset masks"):
        avtt.QuestionSpace(dataset(4, without=(0, 1, 2, 3)), relations, without_region="leave out")
    space = avtt.QuestionSpace(data, relations, without_region="leave out")
    assert (len(space.dataset), space.left_out, space.size) == (8, 2, 16)
    assert len(avtt.QuestionSpace(data).dataset) == 10  # nothing points anywhere
    result = avtt.Audit(space, ScriptedModel(), half_width=0.2, surrogate=False).run()
    assert result.to_dict()["protocol"]["left_out"] == 2
    assert any(w.startswith("2 of 10 images were left out") for w in result.warnings)
    asked = set(result.failures()["sample"])
    assert not asked & {"s3", "s4"}
