"""The [dataset] section of a SPEC.toml."""

from typing import Literal

from pydantic import Field

from .section import Section


class DatasetSpec(Section):
    """The images and their labels."""

    kind: Literal[
        "table",
        "fashion",
        "medmnist",
        "masks",
        "classes",
        "isic",
        "idrid",
        "phantom",
        "endobench",
        "medvqa",
        "coco",
        "voc",
        "scenes",
        "images",
    ] = Field(
        "table",
        description="table: a CSV or Parquet of labels and a folder of images; fashion: the "
        "bundled set; medmnist: an .npz of MedMNIST; masks: folders of images and masks; "
        "classes: a folder of images per class; isic: ISIC 2018 task 2; idrid: IDRiD "
        "segmentation; phantom: synthetic endoscopy frames; endobench: its TSV or Parquet; medvqa: "
        "MEDVQA-GI's gt.json and images; coco: its instances JSON; voc: PASCAL VOC; scenes: "
        "drawn everyday scenes; images: a folder of images, where no label is needed",
    )
    path: str | None = Field(
        None,
        description="medmnist: the .npz or its folder; masks, classes, isic, idrid, "
        "voc, images: folder",
    )
    labels: str | None = Field(
        None, description="table: CSV or .parquet with one row per sample; coco: instances JSON"
    )
    images: str | None = Field(
        None,
        description="table, coco: folder of images; leave out where answers are recorded; "
        "masks, isic: folder within path (default: found by its usual name)",
    )
    masks: str | None = Field(
        None, description="masks, isic: folder within path (default: found by its usual name)"
    )
    id_column: str = Field("id", description="table: column of sample ids")
    file_column: str | None = Field(
        None, description="table: column of file names (default: the id, any image ending)"
    )
    concepts: list[str] | None = Field(
        None,
        description="table: columns to ask about (default: all others), cells 0, 1 or empty; "
        "phantom: what to ask about (default: everything it knows)",
    )
    metadata: list[str] | None = Field(
        None, description="table: columns that describe samples and are no concepts"
    )
    concept: str | None = Field(
        None, description="masks: what the masks show (default: polyp)", min_length=1
    )
    flag: str | None = Field(
        None, description="medmnist: the set, e.g. pathmnist (default: from the file's name)"
    )
    size: int | None = Field(
        None, description="medmnist: 28, 64, 128 or 224; phantom: side in pixels (default: 256)"
    )
    split: str | None = Field(
        None,
        description="medmnist: train, val or test (default); idrid: train, test (default: all); "
        "voc: a list in ImageSets/Main (default: all)",
    )
    classes: Literal["all", "own"] | None = Field(
        None,
        description="medmnist, classes: ask an image about all classes (default), or its own alone",
    )
    empty: Literal["refuse", "skip", "absent"] | None = Field(
        None,
        description="masks: an empty mask is an error (default), left out, or means absent",
    )
    broken: Literal["refuse", "skip"] | None = Field(
        None, description="files that cannot be decoded are an error (default), or left out"
    )
    allow_outside: bool | None = Field(
        None,
        description="table, coco, medvqa, voc: names of files may lead out of their folder (false)",
    )
    most_bytes: int | None = Field(
        None, description="medmnist: a compressed array may unpack to no more bytes (2^31)", ge=1
    )
    tasks: list[str] | None = Field(None, description="endobench: tasks to ask (default: all)")
    looks: bool | None = Field(None, description="endobench: predict by what images look like, too")
    questions: list[int] | None = Field(
        None, description="medvqa: their numbers, 1 to 18 (default: the 14 that are not vague)"
    )
    several: Literal["all", "any"] | None = Field(
        None, description="medvqa: of several true answers, a reply needs all (default) or any"
    )
    count: int | None = Field(None, description="phantom, scenes: number of images", ge=1)
    seed: int | None = Field(None, description="phantom, scenes: same seed, same images (0)")
    difficult: bool | None = Field(None, description="voc: take difficult objects, too (false)")
    outlines: bool | None = Field(
        None, description="coco: keep objects' outlines, to cut out or remove them (false)"
    )
    crowds: bool | None = Field(None, description="coco: take boxes around groups, too (false)")
    polyps: float | None = Field(
        None, description="phantom: share of frames with polyps (default: 0.5)", ge=0, le=1
    )


class DetectorSpec(Section):
    """What finds things in images; without this section, annotated boxes if there are any."""

    kind: Literal["onnx", "regions"] = Field(
        "onnx",
        description="onnx: a detector in a file; regions: parts that stand out, without names",
    )
    path: str | None = Field(None, description="onnx: the file")
    labels: str | None = Field(None, description="onnx: text file of class names, one per line")
    layout: Literal["auto", "yolo", "ssd"] | None = Field(
        None, description="onnx: how the outputs are laid out (auto)"
    )
    threshold: float | None = Field(
        None, description="onnx: boxes less sure than this are left out (0.5)", gt=0, le=1
    )
    overlap: float | None = Field(
        None, description="of boxes that overlap more one is kept (onnx: 0.45, regions: 0.6)",
        gt=0, le=1,
    )  # fmt: skip
    size: int | None = Field(None, description="onnx: side of the input (default: the file's)")
    most: int | None = Field(None, description="regions: at most so many boxes (20)", ge=1)
