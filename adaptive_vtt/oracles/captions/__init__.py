"""Language and localisation: what captions name, and where it is in the picture."""

from ...utils.registry import Registry

TAGGERS = Registry("tagger", "taggers", ("objects",), {})
"""What reads the objects of a caption; beside those of packages there are spaCy's models."""

DETECTORS = Registry(
    "detector",
    "detectors",
    ("detect", "describe"),
    {
        "onnx": f"{__name__}.onnx_detector:OnnxDetector",
        "regions": f"{__name__}.regions:Regions",
    },
)
"""Every kind of detector that a SPEC.toml may name."""
