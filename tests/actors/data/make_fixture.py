#!/usr/bin/env python3
"""Makes tests/actors/data/fixture: a small trained tokenizer in the Qwen form with the ids that Hugging Face tokenizers give, chats laid
out by transformers, positions by its get_rope_index, and pictures in every pixel form that is read, with the colours that they show.

    python make_fixture.py            rewrites the fixture beside this script
"""
import json
import pathlib

import numpy
import torch
from PIL import Image
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2_5_VLConfig, Qwen2_5_VLModel

HERE = pathlib.Path(__file__).resolve().parent / "fixture"
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"]
PLAIN = ["<tool_call>", "</tool_call>"]
TEMPLATE = (
    "{% set image_count = namespace(value=0) %}{% for message in messages %}{% if loop.first and message['role'] != 'system' %}<|im_start|>system\n"
    "You are a helpful assistant.<|im_end|>\n{% endif %}<|im_start|>{{ message['role'] }}\n{% if message['content'] is string %}{{ message['content'] }}"
    "<|im_end|>\n{% else %}{% for content in message['content'] %}{% if content['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif 'text' in content %}{{ content['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
CORPUS = [
    "What is in the picture? There is a red circle and two blue squares on the table.", "Describe the image in detail, please.",
    "The quick brown fox jumps over the lazy dog; it's 12:45, they're late and we'll go.", "How many triangles are there? Three. Count: 1 2 3 4 5 6 7 8 9 0 2024",
    "图片里有什么？有一只猫坐在椅子上。", "これは赤い丸です。", "그림에 무엇이 있습니까?", "ما الذي يوجد في الصورة؟ يوجد قط أحمر.",
    "Что на картинке? Красный круг.", "Grüße aus Köln, naïve café, déjà vu", "def f(x):\n    return x + 1\n\n\nprint(f(2))\r\n\ttab",
    "😀 👩‍👩‍👧‍👦 👍🏽 🇩🇪", "हिन्दी में लिखा हुआ", "ภาษาไทย", "a\u00a0b\u2003c\u3000d", "you are a helpful assistant", "user assistant system",
]
TEXTS = CORPUS + [
    "", " ", "  ", "\n", "\n\n", " \n \n", "   x", "x   ", "x \n y", "\r\n\r\n", "\t\tx", "I'M here, YOU'LL see; don'T 'ſ",
    "e\u0301 n\u0303 \u1112\u1161\u11ab a\u0323\u0302 \u212b \u2126", "\u0301leading mark", "\u200d\u200bzero width", "\u180e mongolian\u180ex", "a\u0085b \u2028 c",
    "1234567890", "٠١٢٣٤٥٦٧٨٩", "１２３", "x²³½", "Ⅷ", "!!!???...---", "a.b.c,d;e:f", "http://example.com/a?b=c&d=e#f", "{\"a\": [1, 2, {\"b\": null}]}",
    "𝕳𝖊𝖑𝖑𝖔 𐍈 🏳️‍🌈", "\u202eright to left\u202c", "لا إله", "שלום עולם", "ffi ﬁ ﬂ", "<tool_call> x </tool_call>", "<tool_call", "<image> is a word here",
    "<|im_start|>user\nhello<|im_end|>", "<|image_pad|><|vision_start|>", "<|endoftext|>", "a<|im_end|>b", "\x00\x01\x7f", "  leading\n  lines\n\n\n", "ç" * 40,
    "abcdefghijklmnopqrstuvwxyz" * 20, "猫" * 100, "-" * 300, " " * 100 + "x", "\n" * 50,
]
CHATS = [
    [("user", ["<image>", "\nWhat is this?"]), ("assistant", "A cat.")],
    [("user", "Hello"), ("assistant", "Hi there!"), ("user", "Who are you?"), ("assistant", "An assistant.")],
    [("system", "Answer in one word."), ("user", ["Compare ", "<image>", " with ", "<image>", "."]), ("assistant", "Same"), ("user", ["And ", "<image>", "?"]), ("assistant", "Other")],
    [("user", "\n\nstarts with newlines"), ("assistant", "\nso does the answer\n")],
    [("user", "no answer"), ("assistant", "")],
    [("user", ["<image>", "<image>"]), ("assistant", "two in a row")],
    [("system", ""), ("user", "empty system"), ("assistant", " leading space")],
]


def trained_tokenizer():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(PATTERN), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), min_frequency=1, show_progress=False)
    tokenizer.train_from_iterator(CORPUS * 3, trainer)
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in SPECIAL])
    tokenizer.add_tokens([AddedToken(t, special=False, normalized=False) for t in PLAIN])
    return tokenizer


def write_model_folder(folder):
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = trained_tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": TEMPLATE, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "model_max_length": 32768}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "preprocessor_config.json").write_text(json.dumps(
        {"min_pixels": 3136, "max_pixels": 200704, "patch_size": 14, "temporal_patch_size": 2, "merge_size": 2,
         "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711], "image_processor_type": "Qwen2VLImageProcessor"}))
    ids = {t: tokenizer.token_to_id(t) for t in SPECIAL}
    (folder / "config.json").write_text(json.dumps(
        {"architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl", "vocab_size": 1000, "hidden_size": 64, "intermediate_size": 96,
         "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "rms_norm_eps": 1e-6, "rope_theta": 1e6, "tie_word_embeddings": False,
         "rope_scaling": {"type": "mrope", "mrope_section": [4, 6, 6]}, "image_token_id": ids["<|image_pad|>"], "video_token_id": ids["<|video_pad|>"],
         "vision_start_token_id": ids["<|vision_start|>"], "vision_end_token_id": ids["<|vision_end|>"],
         "vision_config": {"depth": 2, "hidden_size": 64, "intermediate_size": 96, "num_heads": 2, "in_chans": 3, "out_hidden_size": 64, "patch_size": 14,
                           "spatial_patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 112, "fullatt_block_indexes": [1], "tokens_per_second": 2}}))
    return tokenizer


def expected_texts(tokenizer):
    tokenizer.encode_special_tokens = True
    return [{"text": t, "ids": tokenizer.encode(t, add_special_tokens=False).ids} for t in TEXTS]


def expected_chats(folder, tokenizer):
    hugging_face = PreTrainedTokenizerFast.from_pretrained(folder)
    grids = [(1, 8, 12), (1, 4, 4), (1, 6, 16)]
    token = {t: tokenizer.token_to_id(t) for t in SPECIAL}
    config = Qwen2_5_VLConfig(
        vision_config=dict(depth=1, hidden_size=8, num_heads=1, intermediate_size=8, out_hidden_size=8, fullatt_block_indexes=[0]),
        text_config=dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1, vocab_size=1000,
                         rope_parameters=dict(rope_type="default", mrope_section=[2, 1, 1], rope_theta=1e6)),
        image_token_id=token["<|image_pad|>"], video_token_id=token["<|video_pad|>"], vision_start_token_id=token["<|vision_start|>"], vision_end_token_id=token["<|vision_end|>"])
    model = Qwen2_5_VLModel(config)
    out = []
    for chat in CHATS:
        messages, turns, images = [], [], []
        for role, content in chat:
            if isinstance(content, str):
                messages.append({"role": role, "content": content})
                turns.append({"from": role, "value": content})
                continue
            messages.append({"role": role, "content": [{"type": "image"} if c == "<image>" else {"type": "text", "text": c} for c in content]})
            turns.append({"from": role, "value": "".join(content)})
            images += [grids[(len(images) + i) % 3] for i in range(content.count("<image>"))]
        text = hugging_face.apply_chat_template(messages, tokenize=False)
        ids, at = [], 0
        for i in hugging_face(text, add_special_tokens=False)["input_ids"]:
            if i == token["<|image_pad|>"]:
                t, h, w = images[at]
                ids += [i] * (t * h * w // 4)
                at += 1
            else:
                ids.append(i)
        types = torch.tensor([[int(i == token["<|image_pad|>"]) for i in ids]])
        grid = torch.tensor(images) if images else None
        positions, _ = model.get_rope_index(torch.tensor([ids]), types, image_grid_thw=grid)
        out.append({"record": {"conversations": turns, "image": [f"{i}.png" for i in range(len(images))]}, "grids": images, "ids": ids, "positions": positions[:, 0].tolist()})
    return {"tokens": token, "chats": out}


def pattern(height, width):
    """Four quadrants: red, green / blue, white: an orientation is told apart from any other."""
    a = numpy.zeros((height, width, 3), numpy.uint8)
    a[: height // 2, : width // 2] = (255, 0, 0)
    a[: height // 2, width // 2 :] = (0, 255, 0)
    a[height // 2 :, : width // 2] = (0, 0, 255)
    a[height // 2 :, width // 2 :] = (255, 255, 255)
    return Image.fromarray(a)


def write_pictures(folder):
    folder.mkdir(parents=True, exist_ok=True)
    base = pattern(32, 48)
    base.save(folder / "rgb.jpg", quality=95, subsampling=0)
    base.save(folder / "rgb.png")
    base.save(folder / "rgb.webp", lossless=True)
    base.save(folder / "lossy.webp", quality=95)
    base.save(folder / "progressive.jpg", quality=95, subsampling=0, progressive=True)
    base.convert("L").save(folder / "grey.jpg", quality=95)
    base.convert("CMYK").save(folder / "cmyk.jpg", quality=95)
    base.convert("L").save(folder / "grey.png")
    base.convert("P", palette=Image.Palette.ADAPTIVE).save(folder / "palette.png")
    base.convert("1", dither=Image.Dither.NONE).save(folder / "bilevel.png")
    rgba = base.convert("RGBA")
    rgba.putalpha(128)
    rgba.save(folder / "alpha.png")
    rgba.save(folder / "alpha.webp", lossless=True, exact=True)
    grey_alpha = base.convert("LA")
    grey_alpha.putalpha(128)
    grey_alpha.save(folder / "grey_alpha.png")
    clear = base.convert("P", palette=Image.Palette.ADAPTIVE)
    clear.save(folder / "palette_clear.png", transparency=clear.getpixel((0, 0)))
    ramp = (numpy.arange(48, dtype=numpy.uint16)[None, :] * 0x0500 + 0x00FF).repeat(32, 0)
    Image.fromarray(ramp).save(folder / "grey16.png")
    base.save(folder / "frames.gif", save_all=True, append_images=[base.rotate(180)])
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        base.save(folder / f"orientation{orientation}.jpg", quality=95, subsampling=0, exif=exif)
    exif = Image.Exif()
    exif[0x0112] = 6
    base.save(folder / "orientation6.png", exif=exif)
    base.save(folder / "orientation6.webp", lossless=True, exif=exif)
    base.save(folder / "frames.webp", save_all=True, append_images=[base.rotate(180)], lossless=True)
    base.save(folder / "frames.png", save_all=True, append_images=[base.rotate(180)])
    write_more_pictures(folder, base)


def write_more_pictures(folder, base):
    """GIF, BMP and TIFF in their pixel forms."""
    clear = base.convert("P", palette=Image.Palette.ADAPTIVE)
    clear.save(folder / "clear.gif", transparency=clear.getpixel((0, 0)))
    clear.save(folder / "interlaced.gif", interlace=1)
    base.save(folder / "rgb.bmp")
    base.convert("L").save(folder / "grey.bmp")
    base.convert("P", palette=Image.Palette.ADAPTIVE, colors=16).save(folder / "palette.bmp")
    base.convert("1", dither=Image.Dither.NONE).save(folder / "bilevel.bmp")
    half = base.convert("RGBA")
    half.putalpha(128)
    half.save(folder / "alpha.bmp")
    for name, options in (("rgb", {}), ("lzw", {"compression": "tiff_lzw"}), ("deflate", {"compression": "tiff_adobe_deflate"}),
                          ("packbits", {"compression": "packbits"}), ("jpeg", {"compression": "jpeg", "quality": 95})):
        base.save(folder / f"{name}.tif", **options)
    base.convert("L").save(folder / "grey.tif")
    base.convert("P", palette=Image.Palette.ADAPTIVE).save(folder / "palette.tif")
    base.convert("1", dither=Image.Dither.NONE).save(folder / "group4.tif", compression="group4")
    base.convert("CMYK").save(folder / "cmyk.tif")
    half.save(folder / "alpha.tif")
    ramp = (numpy.arange(48, dtype=numpy.uint16)[None, :] * 0x0500 + 0x00FF).repeat(32, 0)
    Image.fromarray(ramp).save(folder / "grey16.tif")
    base.save(folder / "pages.tif", save_all=True, append_images=[base.rotate(180)])
    for orientation in range(1, 9):
        base.save(folder / f"orientation{orientation}.tif", tiffinfo={0x0112: orientation})


def main():
    tokenizer = write_model_folder(HERE / "model")
    (HERE / "chats.json").write_text(json.dumps(expected_chats(HERE / "model", tokenizer), ensure_ascii=True) + "\n")
    (HERE / "texts.json").write_text("[\n" + ",\n".join(json.dumps(t, ensure_ascii=True) for t in expected_texts(tokenizer)) + "\n]\n")
    write_pictures(HERE / "pictures")


if __name__ == "__main__":
    main()
