"""The demo's fake: right, wrong, refusing and slow at the rates that are set."""

import numpy as np
import pytest

from adaptive_vtt.demo.phantom_frames import CONCEPTS
from adaptive_vtt.demo.server import FAULTS, MODEL, REFUSAL, Behaviour, DemoModel
from adaptive_vtt.demo.server.fake_models import options
from adaptive_vtt.relations import resolve
from adaptive_vtt.testing import demo_server
from adaptive_vtt.types import Ask
from tests.helpers.served import (
    FRAMES,
    ORGANS,
    Quiz,
    frame,
    is_likely,
    messages,
    multiple_choice,
    noisy,
    post,
)


def test_questions_in_words_are_answered_from_the_datasets_own() -> None:
    fake = DemoModel(Quiz(), error=0.0, worse=0.0)  # type: ignore[arg-type]  # all it needs
    for index in range(len(FRAMES)):
        sample = Quiz().sample(index)
        chosen = fake.answer(frame(index), multiple_choice(sample.asks["organ"]))
        assert (chosen.words,) == sample.answers["organ"]
        assert (
            fake.answer(frame(index), "What colour is the sheath?").words
            in (sample.answers["colour"])
        )
        examples = multiple_choice(Ask("Which organ is shown?", ORGANS)) + "\nAnswer: C\n\n"
        chosen = fake.answer(frame(index), examples + multiple_choice(sample.asks["organ"]))
        assert (chosen.words,) == sample.answers["organ"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A. one\nB. two", {"A": "one", "B": "two"}),
        ("(A) one\n(B) two\n", {"A": "one", "B": "two"}),
        ("A) x\nB) y\nAnswer: B\nA) one\nB) two", {"A": "one", "B": "two"}),
        ("A polyp is seen.\nIs it large?", {}),
        ("A. one\nC. three", {}),
    ],
)
def test_options_are_read_from_the_last_list(text: str, expected: dict[str, str]) -> None:
    assert options(text) == expected


@pytest.mark.slow
def test_wrong_answers_come_at_the_rate_that_is_set() -> None:
    rates = {"polyp": 0.1, "text": 0.4}
    fake = DemoModel(FRAMES, error=rates, worse=0.0, seed=3)
    images = noisy(500)
    for concept, rate in {**rates, "blood": 0.0}.items():
        wrong = sum(fake.answer(image, concept).right is False for image in images)
        assert is_likely(wrong, 500, rate), (concept, wrong)


@pytest.mark.slow
def test_errors_grow_with_the_strain_of_a_perturbation() -> None:
    fake = DemoModel(FRAMES, error=0.05, worse=0.5, seed=4)
    (cast,) = resolve(["medtest/white_balance"])
    strains, wrong, expected = [], 0, []
    for severity in (1, 5):
        strain = []
        for index in range(len(FRAMES)):
            for turn in range(4):
                rng = np.random.default_rng([severity, index, turn])
                image = cast.apply(FRAMES.sample(index), severity, rng).image
                assert image is not None
                replies = [fake.answer(image, concept) for concept in CONCEPTS]
                assert {reply.sample for reply in replies} == {FRAMES.sample_id(index)}
                strain.append(replies[0].strain)
                wrong += sum(reply.right is False for reply in replies)
                expected += [fake.error(concept, strain[-1]) for concept in CONCEPTS]
        strains.append(np.mean(strain))
    assert strains[1] > strains[0] + 0.1
    assert fake.answer(frame(0), "polyp").strain == 0
    spread = np.sqrt(np.sum(np.multiply(expected, np.subtract(1, expected))))
    assert abs(wrong - np.sum(expected)) < 4.9 * spread  # normal: probability 1e-6


def test_the_same_image_gets_the_same_answer_and_another_its_own() -> None:
    first, second = (DemoModel(FRAMES, error=0.5, seed=9) for _ in range(2))
    ours = [first.answer(image, "polyp").likelihoods for image in noisy(20)]
    assert ours == [second.answer(image, "polyp").likelihoods for image in noisy(20)]
    assert len({each["Yes"] for each in ours}) == 20
    other = DemoModel(FRAMES, error=0.5, seed=10)
    assert ours != [other.answer(image, "polyp").likelihoods for image in noisy(20)]


def test_refusals_and_rambling_come_at_their_rates_and_keep_the_answer() -> None:
    plain = DemoModel(FRAMES, error=0.3, seed=5)
    fake = DemoModel(FRAMES, error=0.3, refusals=0.2, rambling=0.5, seed=5)
    images = noisy(400)
    replies = [fake.answer(image, "stool") for image in images]
    refused = [reply for reply in replies if reply.refused]
    rambled = [reply for reply in replies if reply.rambled]
    assert is_likely(len(refused), 400, 0.2)
    assert is_likely(len(rambled), 400 - len(refused), 0.5)
    assert {reply.words for reply in refused} == {REFUSAL}
    assert all(reply.choice in reply.words and len(reply.words) > 100 for reply in rambled)
    assert [r.choice for r in replies] == [plain.answer(image, "stool").choice for image in images]


def test_long_answers_are_cut_at_the_limit_of_tokens_and_billed_as_sent() -> None:
    with demo_server(DemoModel(FRAMES, rambling=1.0)) as server:
        asked = {"model": MODEL, "messages": messages(frame(0), "Is there a polyp?")}
        url = server.url + "/v1/chat/completions"
        _, whole = post(url, asked)
        _, cut = post(url, {**asked, "max_tokens": 5})
        assert (whole["choices"][0]["finish_reason"], cut["choices"][0]["finish_reason"]) == (
            "stop",
            "length",
        )
        assert cut["usage"]["completion_tokens"] == 5
        text = whole["choices"][0]["message"]["content"]
        assert text.startswith(cut["choices"][0]["message"]["content"])
        billed = [each["usage"] for each in (whole, cut)]
        counts = server.statistics
        assert counts.completion_tokens == sum(usage["completion_tokens"] for usage in billed)
        assert counts.prompt_tokens == sum(usage["prompt_tokens"] for usage in billed)


def test_faults_come_at_their_rates_and_do_not_depend_on_the_order() -> None:
    behaviour = Behaviour(limited=0.1, broken=0.05, hung=0.02, truncated=0.08, seed=2)
    bodies = [f"body {number}".encode() for number in range(4000)]
    faults = {body: behaviour.faults(body, 0) for body in bodies}
    assert faults == {body: behaviour.faults(body, 0) for body in reversed(bodies)}
    for fault in FAULTS:
        count = sum(faults.fault == fault for faults in faults.values())
        assert is_likely(count, 4000, getattr(behaviour, fault)), (fault, count)
    assert {faults.status for faults in faults.values()} == {500, 502, 503, 504}
    slow = Behaviour(latency=0.5, spread=0.4)
    delays = np.log([slow.faults(body, 0).delay for body in bodies])
    assert np.mean(delays) == pytest.approx(np.log(0.5), abs=4.9 * 0.4 / 4000**0.5)
    assert np.std(delays) == pytest.approx(0.4, rel=0.06)
