"""Money is in the currency of the prices, which changes no draw, and never added up across
currencies."""

import re
from types import SimpleNamespace

import pytest

import adaptive_vtt as avtt
from adaptive_vtt.certify.further import longest
from adaptive_vtt.cli.progress import Live
from adaptive_vtt.errors import InputError
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.models.pair import Pair
from adaptive_vtt.oracles.judge_models import JudgeModel
from adaptive_vtt.results.advice import more_calls, raised
from adaptive_vtt.results.run import Run
from adaptive_vtt.results.runs import read_run
from adaptive_vtt.utils.figures import money
from tests.helpers.command_line import run
from tests.helpers.judged import Reader, Voluble, audit


def paid_in(model, currency):
    model.currency = currency
    return model


@pytest.fixture(scope="module")
def francs(tmp_path_factory):
    """A run that was paid in Swiss francs until it met its cap."""
    out = tmp_path_factory.mktemp("runs") / "francs"
    judge, model = JudgeModel(paid_in(Reader(), "CHF")), paid_in(Voluble(), "CHF")
    with audit(judge, model, max_cost=30.0, journal=out / "journal.db") as running:
        running.run().save(out)
    return out


@pytest.mark.parametrize(
    ("currency", "text"), [("EUR", "€1,234.50"), ("GBP", "£1,234.50"), ("CHF", "1,234.50 CHF")]
)
def test_sums_have_the_sign_or_the_name_of_their_currency(currency, text):
    assert money(1234.5, currency) == text


@pytest.mark.slow
def test_terminal_report_runs_and_json_show_a_runs_own_currency(francs, capsys):
    result = avtt.read_result(francs)
    assert " of 30.00 CHF was spent" in str(result.reason)
    assert f"cost {money(result.cost, 'CHF')}" in repr(result)
    assert result.to_dict()["currency"] == read_run(francs).currency == "CHF"
    page = (francs / "report.html").read_text(encoding="utf-8")
    assert "the cap is 30.00 CHF" in page
    assert "cap: 30.00 CHF" in page
    assert "$2" not in page
    assert re.search(r"would take .* more calls, .*\d CHF", page)
    assert run("runs", str(francs.parent)) == 0
    assert money(result.cost, "CHF") in capsys.readouterr().out


def test_costs_are_not_added_up_across_currencies():
    euros = paid_in(Voluble(), "EUR")
    with pytest.raises(InputError, match=r"versus: currency: expected prices in one .* got EUR of"):
        Pair(euros, Voluble())
    with pytest.raises(InputError, match=r"oracle.judge: currency: .* 'voluble' and USD of 'read"):
        audit(JudgeModel(Reader()), euros)
    free = paid_in(Voluble(), None)
    free.most_cost = None
    assert Pair(free, euros).currency == "EUR"


# -- what more would cost, and what a cap holds back ----------------------------------------


def test_what_is_open_is_priced_and_the_cap_that_is_advised_is_enough(tmp_path, capsys):
    journal, euros = tmp_path / "journal.db", paid_in(Voluble(), "EUR")
    with audit(None, euros, max_cost=30.0, journal=journal) as begun:
        result = begun.run()
        Live(begun, quiet=True).finish(Run(begun.journal), result, tmp_path)
        facts = read_facts(begun.journal.facts())
    further = longest(s.more_calls for s in result.statuses)
    assert further is not None
    calls = further.likely, further.least, further.most
    likely, least, most = (money(float(number), "EUR") for number in calls)
    text = f"more calls, {least} to {most}" if further.wide else f", {likely} ({least} to {most})"
    assert text in " ".join(capsys.readouterr().out.split())
    capped = facts.model_copy(update={"spec": {"audit": {"max_cost": 30.0}}})
    more = more_calls(facts, result.calls, further)
    run = SimpleNamespace(facts=capped, cost=result.cost, table=range(result.questions))
    advice = raised(run, result.calls, more)
    cap = float(advice.removeprefix("--max-cost "))
    with audit(None, paid_in(Voluble(), "EUR"), max_cost=cap, journal=journal) as again:
        assert again.run().reached.all()
    run.facts = capped.model_copy(update={"interrupted": 6, "worst": 2.0})
    held = raised(run, result.calls, more)
    assert float(held.removeprefix("--max-cost ")) >= cap + 6 * 2.0


@pytest.mark.parametrize(("attempts", "advised"), [(6, True), (2, False)])
def test_a_cap_that_lost_calls_hold_back_names_the_retries(attempts, advised):
    model = Voluble()
    model.most_attempts = attempts
    with audit(None, model, max_cost=4.0) as begun:
        begun.take_back(begun.ask(3), sent=True)  # as after a kill
        reason = str(begun.run().reason)
    assert reason.startswith("$1.00 of $4.00 was spent, $3.00 for lost calls ")
    advice = " (fewer retries hold less back: --set model.retries=1 in a new audit)"
    assert reason.endswith(advice) == advised
