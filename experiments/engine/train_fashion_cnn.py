"""Train the bundled FashionCNN on the 60,000 training images and write its model card.

Run: python -m adaptive_vtt.experiments.engine.train_fashion_cnn --data FOLDER_OF_IDX_GZ_FILES

Test images are used neither in training nor in any choice. The number of epochs is fixed
beforehand, and the weights of the last epoch are kept.
"""

import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from adaptive_vtt.datasets.formats.fashion_mnist import (
    CONCEPT_NAMES,
    GARMENTS,
    concept_answers,
    load_arrays,
)
from adaptive_vtt.demo.fashion_cnn import WEIGHTS_FILE, FashionCNN, load_fashion_cnn, predict_with
from adaptive_vtt.experiments.engine.fashion_data import read_split
from adaptive_vtt.experiments.medtest.phantom_unet import save
from adaptive_vtt.experiments.program import options
from adaptive_vtt.utils.files import write_text

BATCH = 128
PEAK_RATE = 3e-3
SHIFT = 2  # pixels
THREADS = 2
SIZE_LIMIT = 1_000_000  # bytes: the weights travel inside the package


def masked_bce(logits: Tensor, answers: Tensor) -> Tensor:
    """Return the mean cross-entropy of known answers; both are (n, 14), and NaN is unknown."""
    known = ~torch.isnan(answers)
    return nn.functional.binary_cross_entropy_with_logits(logits[known], answers[known])


def augment(images: Tensor, rng: torch.Generator) -> Tensor:
    """Shift each of the images (n, 1, 28, 28) by up to 2 pixels and mirror half of them.

    Training has no noise, blur, brightness, contrast or rotation, which the audit tests. So the
    audit has failures to find.
    """
    n = len(images)
    side = images.shape[-1]
    padded = nn.functional.pad(images, (SHIFT, SHIFT, SHIFT, SHIFT))
    windows = padded[:, 0].unfold(1, side, 1).unfold(2, side, 1)
    down, right = torch.randint(0, 2 * SHIFT + 1, (2, n), generator=rng)
    shifted = windows[torch.arange(n), down, right][:, None]
    mirror = torch.rand((n, 1, 1, 1), generator=rng) < 0.5
    return torch.where(mirror, shifted.flip(-1), shifted)


def train(
    images: NDArray[np.uint8], answers: NDArray[np.float32], epochs: int, seed: int
) -> FashionCNN:
    """Train on images (n, 28, 28), answers (n, 14) in {0, 1, NaN}. Return the last epoch's net."""
    torch.manual_seed(seed)
    rng = torch.Generator().manual_seed(seed)
    pixels = torch.from_numpy(images.astype(np.float32) / 255)[:, None]
    targets = torch.from_numpy(answers)
    model = FashionCNN()
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK_RATE, weight_decay=1e-3)
    batches = len(pixels) // BATCH
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, PEAK_RATE, total_steps=epochs * batches
    )
    for epoch in range(epochs):
        started, total = time.perf_counter(), 0.0
        # The last, incomplete batch is dropped; the order changes with each epoch.
        order = torch.randperm(len(pixels), generator=rng)[: batches * BATCH]
        for rows in order.reshape(batches, BATCH):
            loss = masked_bce(model(augment(pixels[rows], rng)), targets[rows])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            total += loss.item()
        seconds = time.perf_counter() - started
        loss_text = f"training loss {total / batches:.4f}"
        print(f"epoch {epoch + 1}: {loss_text}, {seconds:.0f} s", flush=True)
    return model.eval()


def garment_accuracy(p_yes: NDArray[np.float64], garment: NDArray[np.uint8]) -> float:
    """Return the fraction of images whose likeliest garment, of the ten, is the true one."""
    return float((p_yes[:, : len(GARMENTS)].argmax(axis=1) == garment).mean())


def unsure_fraction(p_yes: NDArray[np.float64]) -> float:
    """Return the fraction of all answers with P(yes) between 0.02 and 0.98."""
    return float(((p_yes > 0.02) & (p_yes < 0.98)).mean())


def score_table(p_yes: NDArray[np.float64], answers: NDArray[np.float32]) -> str:
    """Return a Markdown table of performance on original images, one row per concept.

    Args:
        p_yes: (n, 14) P(yes); the model says yes from 0.5 on.
        answers: (n, 14) true answers in {0, 1, NaN}; unknown ones (NaN) are left out.
    """
    says_yes, positive, negative = p_yes >= 0.5, answers == 1, answers == 0
    sensitivity = (says_yes & positive).sum(axis=0) / positive.sum(axis=0)
    specificity = (~says_yes & negative).sum(axis=0) / negative.sum(axis=0)
    table = {
        "concept": CONCEPT_NAMES,
        "balanced accuracy": (sensitivity + specificity) / 2,
        "sensitivity": sensitivity,
        "specificity": specificity,
        "positives": positive.sum(axis=0),
        "negatives": negative.sum(axis=0),
    }
    lines = [
        [f"{v:.4f}" if isinstance(v, float) else str(v) for v in row]
        for row in zip(*table.values(), strict=True)
    ]
    rules = ["---", *["---:"] * (len(table) - 1)]
    return "".join(f"| {' | '.join(line)} |\n" for line in [[*table], rules, *lines])


def model_card(model: FashionCNN, test_accuracy: float, epochs: int, seed: int) -> str:
    """Return the card's text; scores are those of ``model`` on the bundled long-tailed images."""
    images, garment, _ = load_arrays()
    p_yes = predict_with(model, list(images))
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return f"""# FashionCNN

Written by `experiments/engine/train_fashion_cnn.py`; do not edit by hand.

**What it is.** A small convolutional network that answers {len(CONCEPT_NAMES)} yes/no questions
about a 28 x 28 grey image of a garment: which of ten garments it is, and four attributes.

**Intended use.** A model to audit, nothing else.

**Training data.** The 60,000 training images of Fashion-MNIST (Zalando SE, MIT License). The
attributes are derived from the garment class, not seen in each picture; `long sleeves` is unknown
for dresses and shirts, and unknown answers gave no loss. Augmentation: shifts of up to {SHIFT}
pixels and mirroring. No noise, blur, brightness, contrast or rotation.

**Training.** Binary cross-entropy, AdamW, {epochs} epochs, batches of {BATCH}, peak learning rate
{PEAK_RATE}, seed {seed}, float32. No test image was used in training, nor to choose the epochs.

**Architecture.** Three blocks (3 x 3 convolution to 32, 64, 128 channels; batch norm; ReLU; 2 x 2
max pooling), a dense layer of 128 with ReLU, a dense layer of {len(CONCEPT_NAMES)} logits; dropout
0.3 before each dense layer. {parameters:,} parameters, kernels and matrices stored as float16.

**Clean performance.** Garment accuracy (the likeliest of ten): {test_accuracy:.2%} of all 10,000
test images, {garment_accuracy(p_yes, garment):.2%} of the {len(images):,} bundled ones. Of the \
answers on the bundled
images, {unsure_fraction(p_yes):.1%} have P(yes) between 0.02 and 0.98.

The table is for the bundled long-tailed images, with yes from P(yes) = 0.5 on. Unknown answers are
left out.

{score_table(p_yes, concept_answers(garment))}
"""


def main() -> None:
    args = options(__doc__, None, data=Path, out=WEIGHTS_FILE.parent, seed=0, epochs=8)
    torch.set_num_threads(THREADS)
    started = time.perf_counter()
    images, garment = read_split(args.data, "train")
    model = train(images, concept_answers(garment), args.epochs, args.seed)
    print(f"training took {time.perf_counter() - started:.0f} s")

    weights = args.out / WEIGHTS_FILE.name
    save(model, weights)
    if weights.stat().st_size >= SIZE_LIMIT:
        raise SystemExit(f"{weights.stat().st_size} bytes: over the limit of {SIZE_LIMIT}")

    # Score what is shipped, rounded to float16, not the model in memory.
    shipped = load_fashion_cnn(weights)
    test_images, test_garment = read_split(args.data, "t10k")
    test_accuracy = garment_accuracy(predict_with(shipped, list(test_images)), test_garment)
    card = model_card(shipped, test_accuracy, args.epochs, args.seed)
    write_text(weights.with_suffix(".md"), card)
    print(card)


if __name__ == "__main__":
    main()
