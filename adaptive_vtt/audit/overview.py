"""Table of how data was read and what is asked about it, printed before the first question.

``avtt init``, ``avtt audit``, its ``--dry-run`` and ``adaptive_vtt.audit`` print it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from ..datasets.base import adapted_dataset
from ..datasets.scanning import by_number
from ..datasets.view import as_loaded
from ..errors import some
from ..oracles import REGISTRY
from ..space import QuestionSpace
from ..types import SIDES, CallMode
from .proposed import proposed

MANY = 8
"""Maximum number of concepts that have a row each, and of names in a row."""
FEW = 3
"""Maximum number of targets that are named."""
DARK = 32
"""Maximum of an image, out of 255, below which it seems to be 12 bits in a 16-bit file."""

Row = tuple[str, str]
"""Name of a part, and a text about it."""


def overview(space: QuestionSpace, targets: Sequence[str], answers: CallMode) -> list[Row]:
    """Return rows on images, columns, concepts, task, relations, targets, and an example of a call.

    Args:
        space: The questions.
        targets: Names of the certified targets.
        answers: Concepts that a call answers: "all" or "one".
    """
    severities = Counter(variant.relation.name for variant in space.variants)
    relations = [f"{n} (x{k})" if k > 1 else n for n, k in severities.items()]
    suited = proposed(space.dataset)
    rows = [*_data(space, suited.oracle == "top-class")]
    if type(space.oracle.original) is type(REGISTRY.make(suited.oracle, {})):
        rows.append(("task", suited.why))  # who chose another oracle knows the task
    rows.append(("relations (severities)", some(relations, MANY)))
    certified = f"{len(targets)}: {some(targets, FEW)}" if targets else "none is certified"
    # an example of a call: about the first image under the last relation
    dataset, variant = adapted_dataset(as_loaded(space.dataset)), space.variants[-1]
    concepts = dataset.concepts if answers == "all" else dataset.concepts[:1]
    words = [ask.text for ask in dataset.asks(0).values()]
    about = repr(words[0]) if words else some(concepts, MANY)
    severity = f", severity {variant.severity}" if variant.severity else ""
    if len(concepts) > 1 and not words:
        about = f"{'which' if space.oracle.concepts_are == 'classes' else 'each'} of {about}"
    under = f"{dataset.sample_id(0)} under {variant.relation.name}{severity}"
    return [*rows, ("targets", certified), ("a call", f"{under}: {about}?")]


def _data(space: QuestionSpace, classes: bool) -> Iterator[Row]:
    """Yield rows on each part of the data; ``classes``: whether each image has one class."""
    dataset = adapted_dataset(as_loaded(space.dataset))
    images = f"{len(dataset):,}" if dataset.has_images else f"none, of {len(dataset):,} samples"
    if skipped := getattr(dataset, "skipped", ()):
        images += f"; {len(skipped):,} left out, as {some(skipped, FEW)}"
    yield "images", images
    first = dataset.sample(0).image if dataset.has_images and len(dataset) else None
    if first is not None and 0 < first.max() < DARK:
        yield "dark", f"{first.max()} of 255 at most in the first: 12 bits in a 16-bit file?"
    yield from dataset.remarks.items()
    if len(dataset.concepts) > MANY:
        yield "concepts", f"{len(dataset.concepts)}: {some(dataset.concepts, MANY)}"
    else:
        for name, (absent, present) in zip(dataset.concepts, dataset.counts, strict=True):
            unknown = len(dataset) - absent - present
            text = f"concept: {present:,} yes, {absent:,} no" if absent + present else "concept"
            text += f", {unknown:,} unknown" if unknown else ""
            # for classes the number of images, also if only the class of each image is known
            yield name, f"class of images: {present:,}" if classes else text
    names = [*dataset.concepts]
    for rate, side in SIDES.items() if set(space.oracle.rates) == set(SIDES) else ():
        counts = zip(names, dataset.counts, strict=True)
        if constant := [name for name, count in counts if count.sum() and not count[side]]:
            yield f"no {rate}", f"of {some(constant, FEW)}: no label is '{('no', 'yes')[side]}'"
    if names == sorted(names, key=by_number) != (by_text := sorted(names)):
        yield "order", f"{some(names, FEW)}: as numbers; text would give {some(by_text, FEW)}"
    cases = Counter(map(str.casefold, names))
    if alike := [name for name in names if cases[name.casefold()] > 1 and len(name) > 1]:
        yield "alike", f"{some(alike, FEW)} differ in letter case alone, and count as several"
    if plain := [name for name in dataset.metadata_columns if name not in dataset.remarks]:
        yield "metadata", some(plain, MANY)


def show(space: QuestionSpace, targets: Sequence[str], answers: CallMode, to: Console) -> None:
    """Print the table."""
    table = Table(title=f"read: {space.dataset.name}", title_justify="left", box=None)
    table.show_header = False
    table.add_column(overflow="fold", max_width=24)
    table.add_column(overflow="fold")
    for row in overview(space, targets, answers):
        table.add_row(*row)
    to.print(table, markup=False)
