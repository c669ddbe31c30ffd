"""From a SPEC.toml to the parts of a caption audit."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..datasets.base import Dataset
from ..errors import InputError
from ..oracles.base import OracleDefaults
from ..relations import resolve
from ..relations.base import Relation
from . import DetectorSpec, ModelSpec, OracleSpec, SpaceSpec

if TYPE_CHECKING:
    from ..models.demo.template_captioner import TemplateCaptioner

_OPTIONS = ("question", "unanswered_loss")
_RULES = (*_OPTIONS, "detection", "occlusion", "most_boxes", "hide_named", "down", "up")
_WORDS = ("words", "wordnet", "vectors", "threshold", "tagger", "places")
_FIELDS = {
    "captions": (*_RULES, *_WORDS, "inpainting"),
    "caption-classes": (*_OPTIONS, *_WORDS, "classes"),
}
_CAPTIONER = (
    "omission", "misclassification", "fabrication", "price_per_call", "name", "sight", "seed",
    "version",
)  # fmt: skip
_DETECTORS = {
    "onnx": ("path", "labels", "layout", "threshold", "overlap", "size"),
    "regions": ("overlap", "most"),
}


def build_oracle(section: OracleSpec, base: Path, dataset: Dataset) -> OracleDefaults:
    """The oracle of a kind about captions; raises InputError for fields of other kinds."""
    from ..captions import words
    from ..oracles.caption_classes import CaptionClasses
    from ..oracles.captions import ReducedCaptions

    given = _given(section, _FIELDS[section.kind], "oracle")
    same = words.same(
        given.pop("words", "alike"),
        wordnet=_path(given.pop("wordnet", None), base),
        vectors=_path(given.pop("vectors", None), base),
        threshold=given.pop("threshold", None),
    )
    reader = words.reader(given.pop("tagger", None), places=given.pop("places", False))
    if section.kind == "caption-classes":
        classes = given.pop("classes", dataset.concepts)
        return CaptionClasses(tuple(classes), reader, same, **given)
    if "inpainting" in given:
        from ..captions.lama import LaMa

        given["fill"] = LaMa(base / given.pop("inpainting"))
    return ReducedCaptions(reader, same, **given)


def build_captioner(section: ModelSpec, dataset: Dataset) -> "TemplateCaptioner":
    """The captioner that errs as set, over drawn scenes or, by their masks, over phantoms."""
    from ..models.demo.template_captioner import TemplateCaptioner

    options = _given(section, _CAPTIONER, "model")
    seed = options.pop("seed")
    options.pop("version", None)
    name = options.pop("name", TemplateCaptioner.name)
    if options.pop("sight", "colours") == "masks":
        from ..datasets.synthetic.registering import RegisteredSight
        from ..datasets.synthetic.scenery.words import ENDOSCOPY

        options |= {"sight": RegisteredSight(dataset), "vocabulary": ENDOSCOPY}
    made = TemplateCaptioner(price=options.pop("price_per_call", 0.0), seed=seed, **options)
    made.name = name
    return made


def detected(dataset: Dataset, section: DetectorSpec | None, base: Path) -> Dataset:
    """The dataset with a detector's boxes, or as it is where the spec names none."""
    if section is None:
        return dataset
    from ..captions.detectors import Detected

    given = _given(section, _DETECTORS[section.kind], "detector")
    if section.kind == "regions":
        from ..captions.regions import Regions

        return Detected(dataset, Regions(**given))
    from ..captions.onnx_detector import OnnxDetector

    for name in ("path", "labels"):
        if name not in given:
            raise InputError(f"detector.{name}: expected a value for this kind, got nothing")
        given[name] = base / given[name]
    return Detected(dataset, OnnxDetector(given.pop("path"), **given))


def build_relations(section: SpaceSpec, dataset: Dataset) -> list[str | Relation]:
    """The relations of a spec: those about captions made with its options, others by name.

    Raises InputError for an option whose relation is not there.
    """
    options = section.model_dump(exclude={"relations", "severities", "seed"}, exclude_none=True)
    used: set[str] = set()

    def given(*names: str) -> dict[str, Any]:
        used.update(names)
        return {name: options[name] for name in names if name in options}

    found: list[str | Relation] = []
    for name in section.relations:
        if name == "reic":
            from ..relations import reic

            found += reic.relations(**given("follow_ups", "by_ambiguity", "by_diversity"))
        elif name == "rome":
            from ..relations.rome import ROME

            found.append(ROME(**given("choices")))
        elif name == "metaic":
            from ..relations.metaic import MetaIC
            from ..relations.pasting import PER_KIND, cut_outs

            per_kind = given("cut_outs").get("cut_outs", PER_KIND)
            found.append(MetaIC(cut_outs(dataset, per_kind=per_kind)))
        else:
            found.append(name)
    resolve(found)  # a misspelt name is what is wrong then
    for name in sorted(set(options) - used):
        raise InputError(f"space.{name}: none of relations {section.relations} has this option")
    return found


def _given(section: Any, known: tuple[str, ...], where: str) -> dict[str, Any]:
    """The fields that are set; raises InputError for one of another kind."""
    given: dict[str, Any] = section.model_dump(exclude={"kind"}, exclude_none=True)
    for name in given:
        if name not in known:
            raise InputError(f"{where}.{name}: is no field of kind {section.kind!r}")
    return given


def _path(name: str | None, base: Path) -> Path | None:
    return None if name is None else base / name
