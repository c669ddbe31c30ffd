"""From a SPEC.toml to the dataset, space, model and audit that it describes."""

import glob
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import surrogates
from ..audit import Audit
from ..certify import named_targets
from ..cohort import Cohort
from ..errors import InputError
from ..models import ModelUnderTest, load
from ..results.gate import Gated
from ..space import QuestionSpace
from ..stopping import FirstOf, StoppingRule
from ..strategies import Named, default, named
from . import Spec
from .recorded import recorded
from .space_and_model import NotImported as NotImported
from .space_and_model import build_model as build_model
from .space_and_model import build_space as build_space
from .space_and_model import model_of


def build_audit(
    spec: Spec, base: Path, *, check: Callable[[QuestionSpace], None] | None = None, **options: Any
) -> Audit:
    """The audit of a spec; ``options`` (journal, notes, seed, strategy ...) go before it.

    ``check`` is called with the space before the code of model, proxies and strategy is
    imported.
    """
    space = build_space(spec, base)
    if check is not None:
        check(space)
    space, model, chosen = build_parts(spec, base, space)
    return Audit(space, model, **{**chosen, **options})


def build_parts(
    spec: Spec, base: Path, space: QuestionSpace | None = None, *, code: bool = True
) -> tuple[QuestionSpace, ModelUnderTest, dict[str, Any]]:
    """The space, the model and all other arguments of a spec's audit.

    ``space``: where it was built already. Models and proxies that are code are imported last,
    and with ``code`` False not at all: such proxies are left out, and in place of such a model
    stands a `NotImported`.
    """
    space = build_space(spec, base) if space is None else space
    section, certify = spec.audit, spec.certify
    if certify.features != "default":
        space.dataset.features = surrogates.embed(space.dataset, device=section.device)
    proxies = {n: s for n, s in (certify.proxies or {}).items() if code or _is_data(s)}
    options: dict[str, Any] = {
        **section.model_dump(exclude={"strategy_options"}),
        **certify.model_dump(exclude={"proxies", "prior_journal", "cohort", "features"}),
        "strategy": _strategy(spec, base),
        "surrogate": _surrogate(spec, base),
        "stop": _stop(spec, space),
        "goal": spec.stop.goal(),
        "proxies": {n: _proxy(s, base, n) for n, s in proxies.items()},
        "prior_journal": base / certify.prior_journal if certify.prior_journal else None,
        "cohort": _cohort(certify.cohort, base),
    }
    return space, model_of(spec, base, space, code=code), options


def _cohort(runs: str | list[str] | None, base: Path) -> Cohort | None:
    """Of run folders, or patterns of them, in ``base``."""
    if runs is None:
        return None
    inside = glob.escape(str(base)) if base != Path() else ""
    found = [runs] if isinstance(runs, str) else runs
    return Cohort.from_runs(*(Path(inside if glob.has_magic(r) else base, r) for r in found))


def _stop(spec: Spec, space: QuestionSpace) -> StoppingRule | None:
    """The limits under [stop], and the gate."""
    limit, certify = spec.stop.limit(), spec.certify
    if spec.stop.gate is None:
        return limit
    if not certify.certifies:
        raise InputError(
            "stop.gate: expected an audit that certifies, got neither certify.half_width nor "
            "certify.at_most; give the narrowest interval that you would wait for, such as "
            "half_width = 0.02"
        )
    targets = named_targets(space, certify.targets, certify.where)
    gated = Gated.of(spec.stop.gate, [target.id for target in targets])
    return gated if limit is None else FirstOf((limit, gated))


def _strategy(spec: Spec, base: Path) -> Named:
    name = spec.audit.strategy or default(spec.certify.certifies)
    return named(name, spec.audit.strategy_options, base)


def _surrogate(spec: Spec, base: Path) -> bool | surrogates.Named:
    """Raises InputError where one is named and none is to be used."""
    name = spec.audit.surrogate
    if name is None:
        return spec.certify.surrogate
    if not spec.certify.surrogate:
        raise InputError(
            "surrogate: expected a name in [audit] or surrogate = false in [certify], got both "
            f"({name!r})"
        )
    return surrogates.named(name, base)


def _is_data(proxy: str) -> bool:
    return proxy.endswith(".csv")


def _proxy(source: str, base: Path, name: str) -> ModelUnderTest:
    if _is_data(source):
        return recorded(base / source, name)
    return load(source, base=base)
