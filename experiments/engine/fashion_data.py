"""Make the bundled long-tailed set from the Fashion-MNIST test images.

Run: python -m adaptive_vtt.experiments.engine.fashion_data --data FOLDER_OF_IDX_GZ_FILES
"""

import gzip
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from adaptive_vtt.datasets.formats.fashion_mnist import DATA_FILE, GARMENTS

from ..program import options

SEED = 20240607
SIZE_LIMIT = 1_500_000  # bytes: the file travels inside the package

# How many images of each garment: roughly geometric, from 20 % of the set down to 2 %. The rarest
# is the shirt, known as the hardest class, so that rare and difficult coincide.
COUNTS = {
    "t-shirt": 400,
    "sneaker": 340,
    "trouser": 285,
    "pullover": 240,
    "ankle boot": 200,
    "dress": 165,
    "bag": 130,
    "coat": 110,
    "sandal": 90,
    "shirt": 40,
}


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read a gzipped idx file of bytes: images (n, 28, 28) in [0, 255] or labels (n,) in 0..9."""
    raw = gzip.decompress(path.read_bytes())
    # Two zero bytes, the type (8: unsigned byte), the number of axes, each length as big-endian.
    if raw[:3] != b"\x00\x00\x08":
        raise ValueError(f"{path.name} is not an idx file of unsigned bytes")
    axes = raw[3]
    start = 4 + 4 * axes
    shape = tuple(int(length) for length in np.frombuffer(raw[4:start], dtype=">u4"))
    if len(raw) - start != math.prod(shape):
        raise ValueError(f"{path.name}: its header promises {shape}, its length differs")
    return np.frombuffer(raw, dtype=np.uint8, offset=start).reshape(shape)


def read_split(folder: Path, split: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return images (n, 28, 28) and class numbers (n,) of the split "train" or "t10k" (test)."""
    images = read_idx(folder / f"{split}-images-idx3-ubyte.gz")
    garment = read_idx(folder / f"{split}-labels-idx1-ubyte.gz")
    if len(images) != len(garment):
        raise ValueError(f"{split}: {len(images)} images but {len(garment)} labels")
    return images, garment


def choose(garment: NDArray[np.uint8], seed: int = SEED) -> NDArray[np.int32]:
    """Return the chosen images' positions, ascending, so that the garments stay mixed."""
    rng = np.random.default_rng(seed)
    chosen = [
        rng.choice(np.flatnonzero(garment == number), size=COUNTS[name], replace=False)
        for number, name in enumerate(GARMENTS)
    ]
    return np.sort(np.concatenate(chosen)).astype(np.int32)


def main() -> None:
    args = options(__doc__, None, data=Path, out=DATA_FILE)
    images, garment = read_split(args.data, "t10k")
    index = choose(garment)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(args.out, images=images[index], garment=garment[index], index=index)
    size = args.out.stat().st_size
    if size >= SIZE_LIMIT:
        raise SystemExit(f"{size} bytes: over the limit of {SIZE_LIMIT}")
    print(f"{len(index)} images, {size} bytes")
    for number, name in enumerate(GARMENTS):
        count = int((garment[index] == number).sum())
        print(f"{name:12s} {count:4d}  {count / len(index):.1%}")


if __name__ == "__main__":
    main()
