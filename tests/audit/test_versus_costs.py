"""What a comparison costs: calls of both models under a budget, and both bills under a cap."""

from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.audit.versus import Versus
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.experiments.medtest import phantoms
from adaptive_vtt.journal import SQLiteJournal, read_journal
from adaptive_vtt.models import HttpJson, Limits, OpenAIChat, Prices, Retries
from adaptive_vtt.types import Prompt
from tests.audit.test_versus import Skilled, both, space
from tests.helpers.endpoint import Behaviour, DemoModel, demo_server
from tests.helpers.twins import slowly

PLAIN: dict[str, Any] = {"surrogate": False, "candidates": 16, "seed": 6}


# -- what an earlier audit of A costs --------------------------------------------------------


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An audit of model A, on 50 of 66 pictures."""
    path = tmp_path_factory.mktemp("earlier") / "journal.db"
    given = {**PLAIN, "half_width": 0.01, "budget": 50, "seed": 9}
    given["clock"] = lambda: 0.0  # comparisons draw by the journal's head, which times enter
    with Audit(space(11), both()[0], journal=path, **given) as audit:
        audit.run()
    return path


@pytest.mark.parametrize("budget", [7, 31, *slowly(2, 12)])
def test_a_budget_counts_calls_of_both_models_and_is_never_exceeded(earlier: Path, budget: int):
    a, b = Skilled("old", 0.6), Skilled("new", 0.6)  # alike, so that only the budget ends it
    verdict = Versus(space(11), a, b, budget=budget, journal_a=earlier, **PLAIN).run()
    made = len(a.asked) + len(b.asked)
    assert verdict.calls_a + verdict.calls_b == made
    assert budget - 1 <= made <= budget
    assert budget < 12 or len(a.asked) < len(b.asked)  # most of A's answers were known


def test_a_budget_of_one_call_is_none():
    with pytest.raises(InputError, match="budget: expected at least 2 calls"):
        Versus(space(), *both(), budget=1)


def test_repeat_probes_hear_model_a_again_where_its_answers_were_known(earlier: Path):
    """Its drift since the earlier audit was never seen: repeat probes were given what it said
    then."""
    a, b = both()
    given = {**PLAIN, "budget": 60, "repeat_probes": 6}
    verdict = Versus(space(11), a, b, journal_a=earlier, **given).run()
    assert len(a.asked) + len(b.asked) == verdict.calls_a + verdict.calls_b <= 60
    again = [key for key, times in Counter(b.asked).items() if times == 2]
    assert len(again) == 6
    assert set(again) <= set(a.asked)
    changed = Skilled("old", 0.1)
    result = Versus(space(11), changed, both()[1], journal_a=earlier, **given).run().result
    assert result.repeat_probes is not None
    assert result.repeat_probes.differ > 3
    assert any("answers asked again differ" in warning for warning in result.warnings)


def test_a_repeat_probe_s_half_is_paid_for_once(tmp_path: Path):
    a, path = both()[0], tmp_path / "journal.db"

    class Down(Skilled):
        left = 6

        def ask(self, prompts: Sequence[Prompt]) -> Any:
            self.left -= 1
            if self.left < 0:
                raise TimeoutError("no route")
            return super().ask(prompts)

    given = {**PLAIN, "budget": 14, "repeat_probes": 2}
    with Versus(space(), a, Down("new", 0.95, seed=1), journal=path, **given) as versus:
        with pytest.raises(ModelError, match="no route"):
            versus.run()
        assert len(a.asked) == 7  # five pairs, a repeat probe, and half of another
    with Versus(space(), a, both()[1], journal=path, **given) as versus:
        versus.run()
    assert len(a.asked) == 7
    with closing(SQLiteJournal(path, read_only=True)) as journal:
        assert sum(source.cost for source in journal.sources()) == 4


# -- two servers, many calls on their way ------------------------------------------------------

FAULTY: dict[str, Any] = {"latency": 0.004, "spread": 1.0, "limited": 0.1, "broken": 0.1}
TOKENS = Prices(input=1.0, output=1.0, tokens=1)


def spent(server: Any) -> int:
    """Tokens that a server billed, those of answers that got lost on the way included."""
    s = server.statistics
    return int(
        s.prompt_tokens + s.completion_tokens + s.unseen_prompt_tokens + s.unseen_completion_tokens
    )


def test_a_cap_needs_the_prices_of_both_models():
    """That of one alone was taken for that of both, the other being free."""
    priced = HttpJson("http://127.0.0.1:9/", request={}, response="p", prices=Prices(per_call=1.0))
    free = HttpJson("http://127.0.0.1:9/", request={}, response="p")
    for two in ((priced, free), (free, priced)):
        with pytest.raises(InputError, match=r"max_cost: expected the prices of model .* be known"):
            Versus(space(), *two, max_cost=9.0)


@pytest.mark.parametrize("cap", [20_000.0, pytest.param(70_000.0, marks=pytest.mark.slow)])
def test_under_a_cap_two_servers_with_faults_never_bill_more(tmp_path: Path, cap: float):
    """16 calls of each on their way, interrupted twice; the servers count what they billed."""
    dataset = phantoms.frames(30, size=64)
    questions = QuestionSpace(dataset, ["identity", "brightness_up"])
    fake_models = [DemoModel(dataset.concepts, seed=seed) for seed in (1, 2)]
    behaviours = [Behaviour(**FAULTY, truncated=0.1, retry_after=0.01, seed=k) for k in (1, 2)]
    path = tmp_path / "journal.db"

    def model(server: Any, name: str) -> OpenAIChat:
        return OpenAIChat(
            server.model,
            base_url=f"{server.url}/v1",
            prices=TOKENS,
            max_input_tokens=400,
            max_tokens=2,
            limits=Limits(in_flight=16),
            retries=Retries(times=1, first_wait=0.001),
            name=name,
        )

    def stop_at(calls: int) -> Any:
        def step(progress: Any) -> None:
            if progress.state.calls >= calls:
                raise KeyboardInterrupt

        return step

    with (
        demo_server(fake_models[0], behaviours[0]) as one,
        demo_server(fake_models[1], behaviours[1]) as two,
    ):
        for stop in (40, 60, 10**9):
            a, b = model(one, "a"), model(two, "b")
            given = {**PLAIN, "max_cost": cap, "seed": 3, "journal": path}
            with Versus(questions, a, b, **given) as versus, suppress(KeyboardInterrupt):
                versus.run(stop_at(stop))
            a.close()
            b.close()
        billed = spent(one) + spent(two)
        assert max(one.statistics.most_at_once, two.statistics.most_at_once) > 1
    assert billed <= cap
    with closing(read_journal(path)) as journal:
        paid = sum(call.cost for call in journal.calls())
        assert 0.5 * cap < paid <= cap  # where an answer was cut off, its worst price
        verify(journal)
