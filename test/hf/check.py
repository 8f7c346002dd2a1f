"""Reads folders that zeroshard wrote and compares what the models in them answer.

    check.py DIR

DIR/NAME/ is a folder and DIR/NAME.json what zeroshard's model answers.
"""

import glob
import json
import os
import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from gpt2 import answers


def check(folder, want):
    config = AutoConfig.from_pretrained(folder)
    dtype = str(getattr(config, "dtype", None) or config.torch_dtype).removeprefix("torch.")
    assert dtype == want["dtype"], f"dtype is {dtype}, not {want['dtype']}"
    assert config.bos_token_id == config.eos_token_id == want["end"], f"end of text is {config.eos_token_id}, not {want['end']}"
    assert abs(config.layer_norm_epsilon - want["eps"]) < 1e-6 * want["eps"], f"eps is {config.layer_norm_epsilon}, not {want['eps']}"
    model, info = AutoModelForCausalLM.from_pretrained(folder, torch_dtype=torch.float32, output_loading_info=True)
    for key in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        assert not info[key], f"{key}: {info[key]}"
    assert model.lm_head.weight.data_ptr() == model.transformer.wte.weight.data_ptr(), "the head is not tied"
    got = answers(model, want["tokens"], want["prompt"], len(want["greedy"]))
    logits = (torch.tensor(got["logits"]) - torch.tensor(want["logits"])).abs().max().item()
    loss = abs(got["loss"] - want["loss"])
    assert logits <= 1e-4, f"logits differ by {logits}"
    assert loss <= 1e-5, f"losses are {got['loss']} and {want['loss']}"
    assert got["greedy"] == want["greedy"], f"greedy text is {got['greedy']}, not {want['greedy']}"
    print(f"{os.path.basename(folder)}: logits within {logits:.1e}, loss within {loss:.1e}, {len(got['greedy'])} greedy tokens equal")


if __name__ == "__main__":
    found = sorted(glob.glob(os.path.join(sys.argv[1], "*.json")))
    assert found, "there is nothing to check"
    failed = False
    for path in found:
        with open(path) as f:
            want = json.load(f)
        try:
            check(path.removesuffix(".json"), want)
        except AssertionError as e:
            failed = True
            print(f"{os.path.basename(path)}: {e}")
    sys.exit(failed)
