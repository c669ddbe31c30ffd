"""Count the captions that certify the violation rates of a captioner, adaptive and uniform.

    python -m adaptive_vtt.experiments.reic.caption_audits --seeds 2

The rates of REIC's three relations are certified to +-.05, at 95 % together, with the same
guarantee for every strategy. Scenes, captioner and draws follow from the seed, and images have
exact boxes. Captions about hidden boxes count, too. The table has means over seeds, their standard
errors ("+-"), ratios to uniform draws, and how many audits covered the true rates.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.audit.everything import all_losses, means
from adaptive_vtt.certify import named_targets
from adaptive_vtt.oracles import ReducedCaptions
from adaptive_vtt.relations import reic

from ..program import options, save_tables, show
from .drawn_scenes import scenes
from .template_captioner import TemplateCaptioner

STRATEGIES: Mapping[str, Mapping[str, Any]] = {
    "uniform": {"strategy": "random", "surrogate": False},
    "certify": {},
    "neyman": {"strategy": "neyman"},
}
"""Strategy -> options of an audit; uniform comes first."""


def certifying(count: int, half_width: float, seeds: int) -> pd.DataFrame:
    """Return the captions until all three rates are certified, a row per seed and strategy."""
    rows = []
    for seed in range(seeds):
        captioner = TemplateCaptioner(seed=seed)
        space = QuestionSpace(scenes(count, seed=seed), reic.relations(), oracle=ReducedCaptions())
        questions, losses = all_losses(space, captioner)
        rates = means(space, named_targets(space, ["relations"], None), questions, losses)
        for name, strategy in STRATEGIES.items():
            audit = Audit(
                space,
                captioner,
                half_width=half_width,
                targets=["relations"],
                seed=seed,
                **strategy,
            )
            result = audit.run()
            lower, upper = result.targets["lower"], result.targets["upper"]
            rows.append(
                {
                    "seed": seed,
                    "strategy": name,
                    "captions": result.calls,
                    "follow-ups": result.questions,
                    "covered": bool(((lower <= rates) & (rates <= upper)).all()),
                }
            )
    return pd.DataFrame(rows)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return means per strategy, with standard errors and ratios to uniform draws."""
    groups = table.groupby("strategy", sort=False)
    means = pd.DataFrame({"seeds": groups["seed"].count()})
    for figure in ("captions", "follow-ups"):
        means[figure] = groups[figure].mean()
        means[f"{figure} +-"] = groups[figure].sem()
        means[f"{figure} ratio"] = means[figure] / float(groups[figure].mean()["uniform"])
    return means.assign(covered=groups["covered"].sum())


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(
        __doc__,
        arguments,
        quick={"scenes": 20, "seeds": 1, "half_width": 0.2},
        scenes=300,
        seeds=3,
        half_width=0.05,
    )
    table = certifying(chosen.scenes, chosen.half_width, chosen.seeds)
    title = f"captions until all three rates are certified to +-{chosen.half_width}"
    show(summary(table).round(2), title, index=True)
    save_tables({"certifying": table}, chosen.out / "caption_audits.json")


if __name__ == "__main__":
    main()
