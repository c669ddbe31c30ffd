"""The [dataset] section of a SPEC.toml: one class per kind, and what it builds."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from ..datasets import REGISTRY, Dataset
from .section import PLUG_IN, PlugIn, Section, kind_of

_PATH = "within path (default: found by its usual name)"
_OUTSIDE = "names of files may lead out of their folder (false)"
_SEED = "same seed, same images (0)"


class _Data(Section):
    """A kind of dataset; fields that are not set are left to the loader's defaults."""

    kind: Any

    def build(self, base: Path) -> Dataset:
        """The dataset; relative paths start at ``base``."""
        return REGISTRY.get(self.kind)(**self.given())


class _Folder(_Data):
    path: str = Field(description="the folder")

    def build(self, base: Path) -> Dataset:
        return REGISTRY.get(self.kind)(base / self.path, **self.given("path"))


class _Broken(Section):
    broken: Literal["refuse", "skip"] | None = Field(
        None, description="files that cannot be decoded are an error (default), or left out"
    )


class _Scanned(_Folder, _Broken):
    """A folder whose files are taken as they lie there."""

    allow_outside: bool | None = Field(None, description=_OUTSIDE)


class _Labelled(_Broken):
    """A file of labels and, elsewhere, images."""

    kind: Any
    images: str | None = Field(
        None, description="folder of images; leave out where answers are recorded"
    )
    allow_outside: bool | None = Field(None, description=_OUTSIDE)
    labels: str

    def build(self, base: Path) -> Dataset:
        """The dataset; relative paths start at ``base``."""
        given = self.given("labels", "images")
        if self.images is not None:
            given["images"] = base / self.images
        return REGISTRY.get(self.kind)(base / self.labels, **given)


class TableData(_Labelled):
    """A CSV or Parquet of labels and a folder of images."""

    kind: Literal["table"] = "table"
    labels: str = Field(description="CSV or .parquet with one row per sample")
    id_column: str = Field("id", description="column of sample ids")
    file_column: str | None = Field(
        None, description="column of file names (default: the id, any image ending)"
    )
    concepts: list[str] | None = Field(
        None, description="columns to ask about (default: all others), cells 0, 1 or empty"
    )
    metadata: list[str] | None = Field(
        None, description="columns that describe samples and are no concepts"
    )
    class_column: str | None = Field(
        None, description="instead of concepts: the column that names each sample's class"
    )


class FashionData(_Data):
    """The bundled set."""

    kind: Literal["fashion"] = "fashion"


class MedMnistData(_Folder):
    """An .npz of MedMNIST."""

    kind: Literal["medmnist"] = "medmnist"
    path: str = Field(description="the .npz or its folder")
    flag: str | None = Field(
        None, description="the set, e.g. pathmnist (default: from the file's name)"
    )
    size: int | None = Field(None, description="28, 64, 128 or 224")
    split: str | None = Field(None, description="train, val or test (default)")
    classes: Literal["all", "own"] | None = Field(
        None, description="ask an image about all classes (default), or its own alone"
    )
    most_bytes: int | None = Field(
        None, description="a compressed array may unpack to no more bytes (2^31)", ge=1
    )


class MaskData(_Scanned):
    """Folders of images and masks."""

    kind: Literal["masks"] = "masks"
    concept: str | None = Field(
        None, description="what the masks show (default: polyp)", min_length=1
    )
    images: str | None = Field(None, description=f"folder of images {_PATH}")
    masks: str | None = Field(None, description=f"folder of masks {_PATH}")
    empty: Literal["refuse", "skip", "absent"] | None = Field(
        None, description="an empty mask is an error (default), left out, or means absent"
    )


class ClassData(_Scanned):
    """A folder of images per class."""

    kind: Literal["classes"] = "classes"
    classes: Literal["all", "own"] | None = Field(
        None, description="ask an image about all classes (default), or its own alone"
    )


class IsicData(_Scanned):
    """ISIC 2018 task 2."""

    kind: Literal["isic"] = "isic"
    images: str | None = Field(None, description=f"folder of images {_PATH}")
    masks: str | None = Field(None, description=f"folder of masks {_PATH}")


class IdridData(_Scanned):
    """IDRiD segmentation."""

    kind: Literal["idrid"] = "idrid"
    split: str | None = Field(None, description="train, test (default: all)")


class PhantomData(_Data):
    """Synthetic endoscopy frames."""

    kind: Literal["phantom"] = "phantom"
    count: int = Field(description="number of images", ge=1)
    size: int | None = Field(None, description="side in pixels (default: 256)")
    seed: int | None = Field(None, description=_SEED)
    polyps: float | None = Field(
        None, description="share of frames with polyps (default: 0.5)", ge=0, le=1
    )
    concepts: list[str] | None = Field(
        None, description="what to ask about (default: everything it knows)"
    )

    def build(self, base: Path) -> Dataset:
        return REGISTRY.get(self.kind)(self.count, **self.given("count"))


class EndoBenchData(_Folder, _Broken):
    """EndoBench, as a TSV or Parquet."""

    kind: Literal["endobench"] = "endobench"
    path: str = Field(description="the TSV or Parquet")
    tasks: list[str] | None = Field(None, description="tasks to ask (default: all)")
    looks: bool | None = Field(None, description="predict by what images look like, too")


class MedVqaData(_Folder, _Broken):
    """MEDVQA-GI's gt.json and images."""

    kind: Literal["medvqa"] = "medvqa"
    questions: list[int] | None = Field(
        None, description="their numbers, 1 to 18 (default: the 14 that are not vague)"
    )
    several: Literal["all", "any"] | None = Field(
        None, description="of several true answers, a reply needs all (default) or any"
    )
    allow_outside: bool | None = Field(None, description=_OUTSIDE)


class CocoData(_Labelled):
    """COCO's instances JSON."""

    kind: Literal["coco"] = "coco"
    labels: str = Field(description="the instances JSON")
    images: str = Field(description="folder of images")
    crowds: bool | None = Field(None, description="take boxes around groups, too (false)")
    outlines: bool | None = Field(
        None, description="keep objects' outlines, to cut out or remove them (false)"
    )


class VocData(_Folder, _Broken):
    """PASCAL VOC."""

    kind: Literal["voc"] = "voc"
    split: str | None = Field(None, description="a list in ImageSets/Main (default: all)")
    difficult: bool | None = Field(None, description="take difficult objects, too (false)")
    allow_outside: bool | None = Field(None, description=_OUTSIDE)


class ScenesData(_Data):
    """Drawn everyday scenes."""

    kind: Literal["scenes"] = "scenes"
    count: int = Field(description="number of images", ge=1)
    seed: int | None = Field(None, description=_SEED)

    def build(self, base: Path) -> Dataset:
        return REGISTRY.get(self.kind)(self.count, **self.given("count"))


class HuggingFaceData(_Folder):
    """Hugging Face's datasets: what save_to_disk wrote, and Parquet with images."""

    kind: Literal["hf"] = "hf"
    path: str = Field(description="the folder, or a .parquet file")
    split: str | None = Field(None, description="needed where there are several")
    image_column: str | None = Field(
        None, description="column of images (default: the only one that holds some)"
    )
    class_column: str | None = Field(
        None, description="column of classes (default: the only one said to be)"
    )
    concepts: list[str] | None = Field(None, description="instead: columns of 0 and 1")
    mask_column: str | None = Field(None, description="instead: column of masks")
    mask_values: dict[str, int] | None = Field(
        None, description="concept -> its pixel value (default: inside is above 127)"
    )
    question_column: str | None = Field(None, description="instead: column of questions in words")
    answer_column: str | None = Field(
        None, description="column of right answers, one or a list; with question_column"
    )
    id_column: str | None = Field(None, description="column of sample ids (default: row numbers)")
    metadata: list[str] | None = Field(None, description="columns that describe samples")


class ImagesData(_Scanned):
    """A folder of images, where no label is needed."""

    kind: Literal["images"] = "images"
    concepts: list[str] | None = Field(
        None, description="what the model answers about, a column each (default: image)"
    )


class PlugInData(PlugIn):
    """A dataset of a package or file of your own."""

    def build(self, base: Path) -> Dataset:
        """The dataset; its code is imported."""
        return REGISTRY.checked(REGISTRY.make(self.kind, self.options, base), self.kind)


DatasetSpec = Annotated[
    Annotated[TableData, Tag("table")]
    | Annotated[FashionData, Tag("fashion")]
    | Annotated[MedMnistData, Tag("medmnist")]
    | Annotated[MaskData, Tag("masks")]
    | Annotated[ClassData, Tag("classes")]
    | Annotated[IsicData, Tag("isic")]
    | Annotated[IdridData, Tag("idrid")]
    | Annotated[PhantomData, Tag("phantom")]
    | Annotated[EndoBenchData, Tag("endobench")]
    | Annotated[MedVqaData, Tag("medvqa")]
    | Annotated[CocoData, Tag("coco")]
    | Annotated[VocData, Tag("voc")]
    | Annotated[ScenesData, Tag("scenes")]
    | Annotated[HuggingFaceData, Tag("hf")]
    | Annotated[ImagesData, Tag("images")]
    | Annotated[PlugInData, Tag(PLUG_IN)],
    Discriminator(kind_of(REGISTRY, "table")),
]
"""The images and their labels."""
