"""Count the captions that certify a captioner whose every fault is known.

The violation rates of REIC's three relations are certified to +-.05, at 95 % together, by adaptive
and by uniform draws with the same guarantee. Scenes, captioner and draws follow from the seed. A
mean over seeds has its standard error. Images have exact boxes. Captions about hidden boxes count,
too.
"""

from collections.abc import Sequence

import pandas as pd

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.audit.everything import all_losses, means
from adaptive_vtt.certify import named_targets
from adaptive_vtt.oracles import ReducedCaptions
from adaptive_vtt.relations import reic

from ..program import options, save_tables, show
from .drawn_scenes import scenes
from .template_captioner import TemplateCaptioner


def certifying(count: int, half_width: float, seeds: int) -> pd.DataFrame:
    """Return the captions until all three rates are certified, a row per seed and strategy."""
    rows = []
    for seed in range(seeds):
        captioner = TemplateCaptioner(seed=seed)
        space = QuestionSpace(scenes(count, seed=seed), reic.relations(), oracle=ReducedCaptions())
        questions, losses = all_losses(space, captioner)
        rates = means(space, named_targets(space, ["relations"], None), questions, losses)
        for name, given in (
            ("uniform", {"strategy": "random", "surrogate": False}),
            ("certify", {}),
            ("neyman", {"strategy": "neyman"}),
        ):
            audit = Audit(
                space,
                captioner,
                half_width=half_width,
                targets=["relations"],
                seed=seed,
                **given,
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


def summary(table: pd.DataFrame, by: str, baseline: str, figures: Sequence[str]) -> pd.DataFrame:
    """Return mean and standard error of each figure per ``by``, and the ratio of its mean to the
    baseline's.
    """
    groups = table.groupby(by, sort=False)
    found = pd.DataFrame({"seeds": groups["seed"].count()})
    for figure in figures:
        found[figure] = groups[figure].mean()
        found[f"{figure} +-"] = groups[figure].sem()
        found[f"{figure} ratio"] = found[figure] / float(groups[figure].mean()[baseline])
    if "covered" in table:
        found["covered"] = groups["covered"].sum()
    return found


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
    figures = summary(table, "strategy", "uniform", ("captions", "follow-ups")).round(2)
    title = f"captions until all three rates are known to +-{chosen.half_width}"
    show(figures, title, index=True)
    save_tables({"certifying": table}, chosen.out / "caption_audits.json")


if __name__ == "__main__":
    main()
