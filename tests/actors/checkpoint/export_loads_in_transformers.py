"""Exports small Qwen2.5-VL folders through export_round_trip and loads them with transformers.

usage: export_loads_in_transformers.py EXPORT_ROUND_TRIP WORK_FOLDER
"""
import json
import shutil
import subprocess
import sys
from pathlib import Path

try:
    import torch
    from safetensors import safe_open
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


def config(tied):
    text = dict(hidden_size=48, intermediate_size=68, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2, vocab_size=211,
                rope_parameters={"rope_type": "default", "mrope_section": [2, 1, 1], "rope_theta": 10000.0}, tie_word_embeddings=tied,
                bos_token_id=1, eos_token_id=2, pad_token_id=0)
    vision = dict(depth=2, hidden_size=32, intermediate_size=40, num_heads=4, out_hidden_size=48, fullatt_block_indexes=[1], window_size=112)
    return Qwen2_5_VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=tied, image_token_id=200, video_token_id=201,
                            vision_start_token_id=202, vision_end_token_id=203)


def export(program, source, target, tp, init, dtype):
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run([program, str(source), str(target), str(tp), init, dtype], check=True)


def load(folder):
    model, info = Qwen2_5_VLForConditionalGeneration.from_pretrained(folder, output_loading_info=True)
    problems = {k: v for k, v in info.items() if v and k in ("missing_keys", "unexpected_keys", "mismatched_keys")}
    assert not problems, f"{folder}: {problems}"
    return model


def check_equal(actual, expected, what):
    a, e = actual.state_dict(), expected.state_dict()
    assert a.keys() == e.keys(), what
    for name in e:
        assert a[name].dtype == e[name].dtype and torch.equal(a[name], e[name]), f"{what}: {name} differs"


def check_round_trips(program, work, tied, dtype):
    torch.manual_seed(1)
    model = Qwen2_5_VLForConditionalGeneration(config(tied)).to(torch.bfloat16 if dtype == "bf16" else torch.float32)
    for shards in (1, 3):
        source = work / f"source-{tied}-{dtype}-{shards}"
        shutil.rmtree(source, ignore_errors=True)
        model.save_pretrained(source, max_shard_size="100GB" if shards == 1 else "200KB")
        for tp in (1, 3):
            target = work / "export"
            export(program, source, target, tp, "pretrained", dtype)
            check_equal(load(target), model, f"{source.name}, tp {tp}")
            assert sorted(p.name for p in source.iterdir()) == sorted(p.name for p in target.iterdir())
            for file in source.glob("*.safetensors"):
                with safe_open(file, "pt") as s, safe_open(target / file.name, "pt") as t:
                    assert list(s.keys()) == list(t.keys()) and s.metadata() == t.metadata(), file.name


def check_random(program, work, tied, dtype):
    source, target = work / f"shapes-{tied}", work / "random"
    shutil.rmtree(source, ignore_errors=True)
    config(tied).save_pretrained(source)
    stated = json.loads((source / "config.json").read_text()).get("dtype")
    models = []
    for tp in (1, 3):
        export(program, source, target, tp, "random", dtype)
        assert (target / "model.safetensors.index.json").exists()
        models.append(load(target))
    check_equal(models[1], models[0], f"random, tied {tied}, config dtype {stated}")
    weight = models[0].state_dict()["model.visual.blocks.0.attn.qkv.weight"]
    if stated is not None:
        assert weight.dtype == (torch.bfloat16 if dtype == "bf16" else torch.float32)
    assert 0.015 < weight.float().std() < 0.025


def main():
    program, work = sys.argv[1], Path(sys.argv[2])
    work.mkdir(parents=True, exist_ok=True)
    for tied, dtype in ((False, "fp32"), (True, "bf16")):
        check_round_trips(program, work, tied, dtype)
        check_random(program, work, tied, dtype)
    print("all exported folders load with equal tensors")


if __name__ == "__main__":
    main()
