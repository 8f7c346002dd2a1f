"""The commands, end to end: what zeroshard trains and exports, transformers continues with the same text, and the other way round.

    commands.py ZEROSHARD DIR
"""

import json
import os
import subprocess
import sys

import numpy
import safetensors.torch
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import make

PROMPTS = ["12 stones lie in the river;", "Ünïcödé — 河流, naïve café\n\n  \tend", "a"]
TEXT = "".join(f"{n} stones lie in the river; 'twas né{n % 7} bridges — she’ll cross at {n * n}.\n" for n in range(400)) + "河流\u2028 \t  x"
NEW = 24


def run(*args):
    done = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True)
    assert done.returncode == 0, f"{' '.join(args)}: exit code {done.returncode}\n{done.stderr.decode()}"
    return done.stdout.decode()


def same_text(binary, source, folder):
    """generate from source says what transformers says of folder: the same ids for the prompts, then the same ids and text."""
    args = [binary, "generate", "--from", source, "--temperature", "0", "--max-tokens", str(NEW), "--json", "--quiet"]
    for prompt in PROMPTS:
        args += ["--prompt", prompt]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, torch_dtype=torch.float32).eval()
    lines = run(*args).splitlines()
    assert len(lines) == len(PROMPTS), lines
    for prompt, line in zip(PROMPTS, lines):
        got, ids = json.loads(line), tokenizer(prompt).input_ids
        assert got["prompt_ids"] == ids, f"{prompt!r} is {got['prompt_ids']}, there {ids}"
        x = torch.tensor([ids])
        text = model.generate(x, attention_mask=torch.ones_like(x), max_new_tokens=NEW, do_sample=False, pad_token_id=0)[0, len(ids):]
        assert got["ids"] == text.tolist() and len(got["ids"]) == NEW, f"{prompt!r} goes on with {got['ids']}, there with {text.tolist()}"
        words = tokenizer.decode(text, clean_up_tokenization_spaces=False)
        assert got["text"] == words, f"{prompt!r} goes on with {got['text']!r}, there with {words!r}"


def same_ids(binary, folder, text, out):
    """prepare gives the ids of the folder's tokenizer in transformers."""
    run(binary, "prepare", text, "-o", out, "--tokenizer", folder, "--val", "0", "--quiet")
    got = numpy.fromfile(os.path.join(out, "train.bin"), dtype=numpy.uint16).tolist()
    want = AutoTokenizer.from_pretrained(folder)(TEXT, verbose=False).input_ids
    assert got == want, f"{len(got)} ids, there {len(want)}"


def weights(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".safetensors"):
            found.update(safetensors.torch.load_file(os.path.join(folder, name)))
    return found


def trained(binary, out):
    """A model of bytes that zeroshard trained."""
    text, data, run_folder, folder = (os.path.join(out, n) for n in ("text.txt", "bytes", "run", "exported"))
    with open(text, "w", newline="") as f:
        f.write(TEXT)
    run(binary, "prepare", text, "-o", data, "--tokenizer", "bytes", "--quiet")
    run(binary, "train", "--model", "tiny", "--seq", "64", "--data", data, "--steps", "40", "--stage", "3", "--ranks", "2",
        "--save-every", "40", "--out", run_folder, "--quiet")
    run(binary, "checkpoint", "export", run_folder, "--hf", folder)
    same_text(binary, run_folder, folder)
    same_text(binary, folder, folder)
    same_ids(binary, folder, text, os.path.join(out, "ids-bytes"))
    print("trained here: the same ids and greedy text there")


def imported(binary, out):
    """A model with GPT-2's vocabulary that transformers made."""
    theirs, step, back, half = (os.path.join(out, n) for n in ("theirs", "imported", "back", "half"))
    make.make(seed=20, vocab_size=50257, n_positions=64, n_embd=16, bos_token_id=50256, eos_token_id=50256).save_pretrained(theirs)
    run(binary, "checkpoint", "import", theirs, "--out", step)
    run(binary, "checkpoint", "export", step, "--hf", back, "--tokenizer", "gpt2")
    run(binary, "checkpoint", "export", step, "--hf", half, "--tokenizer", "gpt2", "--dtype", "bf16", "--shard-bytes", "1000000")
    was, now, rounded = weights(theirs), weights(back), weights(half)
    assert was.keys() == now.keys() == rounded.keys(), was.keys() ^ now.keys() | was.keys() ^ rounded.keys()
    for name, w in was.items():
        assert torch.equal(w, now[name]), f"{name} came back with other bits"
        assert torch.equal(w.to(torch.bfloat16), rounded[name]), f"{name} is rounded in another way"
    same_text(binary, step, back)
    same_text(binary, half, half)
    same_ids(binary, back, os.path.join(out, "text.txt"), os.path.join(out, "ids-gpt2"))
    print("made there: the same bits after import and export, the same ids and greedy text")


if __name__ == "__main__":
    trained(sys.argv[1], sys.argv[2])
    imported(sys.argv[1], sys.argv[2])
