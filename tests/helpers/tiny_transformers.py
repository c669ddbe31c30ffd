"""Models of transformers with random weights, a few kilobytes each."""

from pathlib import Path
from typing import Any

import pytest
import torch

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")
transformers.utils.logging.disable_progress_bar()  # which leaves a thread

SIDE = 32
SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}
VISION = {**SIZES, "image_size": SIDE, "patch_size": 16}
WORDS = "yes no Yes No a polyp image the red thing show this dog cup tree"
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<image>")
CHAT = (
    "{% for message in messages %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image> {% else %}{{ part['text'] }} {% endif %}"
    "{% endfor %}{% endfor %}"
)


def tokenizer() -> Any:
    """Return a tokenizer with one token per word, and [UNK] for unknown words."""
    of = {word: number for number, word in enumerate((*SPECIAL, *WORDS.split()))}
    plain = tokenizers.Tokenizer(tokenizers.models.WordLevel(of, unk_token="[UNK]"))
    plain.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    plain.add_special_tokens(list(SPECIAL))
    named = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    more = {"extra_special_tokens": {"image_token": "<image>"}, "model_max_length": 64}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=plain, **named, **more)


def classifier(folder: Path, labels: tuple[str, ...]) -> Path:
    """Write a ViT."""
    config = transformers.ViTConfig(**VISION, id2label=dict(enumerate(labels)))
    processor = transformers.ViTImageProcessor(size={"height": SIDE, "width": SIDE})
    return _saved(folder, transformers.ViTForImageClassification(config), processor)


def chat(folder: Path) -> Path:
    """Write a LLaVA: CLIP's encoder before a Llama."""
    words = {"vocab_size": len(SPECIAL) + len(WORDS.split()), "pad_token_id": 0}
    config = transformers.LlavaConfig(
        vision_config=transformers.CLIPVisionConfig(**VISION, projection_dim=16),
        text_config=transformers.LlamaConfig(**SIZES, **words, num_key_value_heads=2),
        image_token_index=SPECIAL.index("<image>"),
        vision_feature_layer=-1,
    )
    sides = {"height": SIDE, "width": SIDE}
    processor = transformers.LlavaProcessor(
        transformers.CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size=sides),
        tokenizer(),
        patch_size=16,
        vision_feature_select_strategy="default",
        chat_template=CHAT,
        num_additional_image_tokens=1,
    )
    return _saved(folder, transformers.LlavaForConditionalGeneration(config), processor)


def _saved(folder: Path, model: Any, processor: Any) -> Path:
    """Write a model with large weights, always the same, so that its answers depend on images.

    Its replies are never special tokens alone.
    """
    draws = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, part in model.named_parameters():
            part.copy_(torch.randn(part.shape, generator=draws) * (0.0 if "bias" in name else 0.5))
            if name == "lm_head.weight":
                part[: len(SPECIAL)] = 0.0
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
