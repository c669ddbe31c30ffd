"""Models of transformers with random weights, a few kilobytes each."""

from pathlib import Path
from typing import Any

import pytest
import torch

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")
transformers.utils.logging.disable_progress_bar()  # which leaves a thread

SIDE = 32
VISION = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "image_size": SIDE,
    "patch_size": 16,
}
TEXT = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}
WORDS = (
    "yes",
    "no",
    "Yes",
    "No",
    "a",
    "polyp",
    "image",
    "the",
    "red",
    "thing",
    "show",
    "this",
    "dog",
    "cup",
    "tree",
)
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[DEC]", "[ENC]", "<image>")
CHAT = (
    "{% for message in messages %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image> {% else %}{{ part['text'] }} {% endif %}"
    "{% endfor %}{% endfor %}"
)


def tokenizer() -> Any:
    """One token per word; what it does not know is [UNK]."""
    of = {word: number for number, word in enumerate((*SPECIAL, *WORDS))}
    plain = tokenizers.Tokenizer(tokenizers.models.WordLevel(of, unk_token="[UNK]"))
    plain.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    plain.add_special_tokens(list(SPECIAL))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        extra_special_tokens={"image_token": "<image>"},
        model_max_length=64,
    )


def _ids() -> dict[str, Any]:
    words = len(SPECIAL) + len(WORDS)
    return {"vocab_size": words, "pad_token_id": 0, "bos_token_id": 5, "sep_token_id": 3}


def classifier(folder: Path, labels: tuple[str, ...], **config: Any) -> Path:
    """A ViT."""
    return _saved(
        folder,
        transformers.ViTForImageClassification(
            transformers.ViTConfig(**VISION, id2label=dict(enumerate(labels)), **config)
        ),
        transformers.ViTImageProcessor(size={"height": SIDE, "width": SIDE}),
    )


def chat(folder: Path, *, template: str | None = CHAT) -> Path:
    """A LLaVA: CLIP's encoder before a Llama."""
    config = transformers.LlavaConfig(
        vision_config=transformers.CLIPVisionConfig(**VISION, projection_dim=16),
        text_config=transformers.LlamaConfig(
            **TEXT, num_key_value_heads=2, vocab_size=_ids()["vocab_size"], pad_token_id=0
        ),
        image_token_index=SPECIAL.index("<image>"),
        vision_feature_layer=-1,
    )
    seeing = transformers.CLIPImageProcessor(
        size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE}
    )
    processor = transformers.LlavaProcessor(
        seeing,
        tokenizer(),
        patch_size=16,
        vision_feature_select_strategy="default",
        chat_template=template,
        num_additional_image_tokens=1,
    )
    return _saved(folder, transformers.LlavaForConditionalGeneration(config), processor)


def _saved(folder: Path, model: Any, processor: Any) -> Path:
    """Weights far from zero and the same every time, so that images matter; no reply of special
    tokens alone."""
    draws = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, part in model.named_parameters():
            part.copy_(torch.randn(part.shape, generator=draws) * (0.0 if "bias" in name else 0.5))
            if name.endswith("predictions.bias") or name.endswith("decoder.bias"):
                part[: len(SPECIAL)] = -50.0
            if name == "lm_head.weight":
                part[: len(SPECIAL)] = 0.0
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
