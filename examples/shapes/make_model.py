"""Writes the model folder of the shapes example: a small Qwen2.5-VL without weights, and a tokenizer trained on the example's questions.

Usage: python3 make_model.py [FOLDER]          needs tokenizers; run generate.py first
`model/` has the flat config.json of published folders, `model-nested/` the form that newer transformers write.
"""

import json
import sys
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
SYSTEM = "You are a helpful assistant."

TEMPLATE = (
    "{% for message in messages %}{% if loop.first and message['role'] != 'system' %}<|im_start|>system\n" + SYSTEM + "<|im_end|>\n{% endif %}"
    "<|im_start|>{{ message['role'] }}\n{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}{% if part['type'] == 'image' or 'image' in part %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif part['type'] == 'video' or 'video' in part %}<|vision_start|><|video_pad|><|vision_end|>"
    "{% elif 'text' in part %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def train_tokenizer(folder):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(WORDS), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    tokenizer.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    texts = [SYSTEM, "system\n", "user\n", "assistant\n"] * 8
    for line in open(folder / "train.jsonl", encoding="utf-8"):
        texts += [turn["value"].replace("<image>", "") for turn in json.loads(line)["conversations"]]
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=600, min_frequency=4, show_progress=False, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in CONTROL])
    return tokenizer


def tokenizer_settings(ids):
    added = {str(ids[token]): {"content": token, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
             for token in CONTROL}
    return {"add_bos_token": False, "add_prefix_space": False, "added_tokens_decoder": added, "additional_special_tokens": CONTROL[1:],
            "bos_token": None, "chat_template": TEMPLATE, "clean_up_tokenization_spaces": False, "eos_token": "<|im_end|>", "errors": "replace",
            "model_max_length": 4096, "pad_token": "<|endoftext|>", "split_special_tokens": False, "tokenizer_class": "Qwen2Tokenizer",
            "unk_token": None}


def configs(ids, vocabulary):
    """The flat and the nested form of the same model."""
    text = {"hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 12, "num_key_value_heads": 4, "intermediate_size": 256,
            "vocab_size": vocabulary, "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "hidden_act": "silu", "initializer_range": 0.02,
            "attention_dropout": 0.0, "use_cache": True, "use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 3,
            "bos_token_id": ids["<|endoftext|>"], "eos_token_id": ids["<|im_end|>"]}
    vision = {"depth": 3, "hidden_size": 96, "num_heads": 6, "intermediate_size": 256, "out_hidden_size": 96, "in_channels": 3, "in_chans": 3,
              "patch_size": 14, "spatial_patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2, "tokens_per_second": 2,
              "window_size": 112, "fullatt_block_indexes": [0, 2], "hidden_act": "silu", "model_type": "qwen2_5_vl"}
    sections = [2, 1, 1]
    head = {"architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl", "image_token_id": ids["<|image_pad|>"],
            "video_token_id": ids["<|video_pad|>"], "vision_start_token_id": ids["<|vision_start|>"], "vision_end_token_id": ids["<|vision_end|>"],
            "vision_token_id": ids["<|image_pad|>"], "tie_word_embeddings": False}
    flat = {**head, **text, "torch_dtype": "float32", "rope_theta": 10000.0, "rope_scaling": {"type": "mrope", "mrope_section": sections},
            "vision_config": vision}
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": sections}
    nested = {**head, "dtype": "float32", "text_config": {**text, "model_type": "qwen2_5_vl_text", "rope_parameters": rope},
              "vision_config": {k: v for k, v in vision.items() if k not in ("in_chans", "spatial_patch_size")} | {"model_type": "qwen2_5_vl_vision"}}
    return flat, nested


def write(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    tokenizer = train_tokenizer(folder)
    ids = {token: tokenizer.token_to_id(token) for token in CONTROL}
    vocabulary = tokenizer.get_vocab_size()
    preprocessor = {"min_pixels": 4 * 28 * 28, "max_pixels": 64 * 28 * 28, "patch_size": 14, "temporal_patch_size": 2, "merge_size": 2,
                    "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711],
                    "image_processor_type": "Qwen2VLImageProcessor", "processor_class": "Qwen2_5_VLProcessor"}
    generation = {"bos_token_id": ids["<|endoftext|>"], "eos_token_id": [ids["<|im_end|>"], ids["<|endoftext|>"]],
                  "pad_token_id": ids["<|endoftext|>"], "do_sample": False}
    for name, config in zip(("model", "model-nested"), configs(ids, vocabulary)):
        target = folder / name
        target.mkdir(exist_ok=True)
        tokenizer.save(str(target / "tokenizer.json"))
        write(target / "config.json", config)
        write(target / "tokenizer_config.json", tokenizer_settings(ids))
        write(target / "preprocessor_config.json", preprocessor)
        write(target / "generation_config.json", generation)
        (target / "chat_template.json").write_text(json.dumps({"chat_template": TEMPLATE}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
