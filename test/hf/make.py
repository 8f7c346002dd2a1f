"""Writes folders with transformers, as it and others have written them over the years, and what the models in them answer.

    make.py DIR

DIR/NAME/ is a folder and DIR/NAME.json what its model answers, or the reason ("refused") for which it must not be read.
"""

import os
import sys

import safetensors.torch
import torch
import transformers
from transformers import GPT2Config, GPT2ForSequenceClassification, GPT2LMHeadModel, GPT2Model

from gpt2 import answers, write_json

SIZE = dict(vocab_size=97, n_positions=24, n_embd=32, n_layer=3, n_head=4, bos_token_id=0, eos_token_id=0)


def random(model, seed):
    """Values of all parameters that make every part of the model matter."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(0, 0.25, generator=g)
            if ".ln_" in name and name.endswith("weight"):
                p.add_(1)
    return model


def make(kind=GPT2LMHeadModel, seed=1, **settings):
    return random(kind(GPT2Config(**{**SIZE, **settings})), seed)


def save(out, name, model, expect=None, **how):
    """Saves a model and what it answers as it comes back from the folder in fp32."""
    folder = os.path.join(out, name)
    model.save_pretrained(folder, **how)
    if expect is None:
        expect = ask(GPT2LMHeadModel.from_pretrained(folder, torch_dtype=torch.float32))
    write_json(folder + ".json", expect)
    return folder


def ask(model):
    g = torch.Generator().manual_seed(7)
    tokens = torch.randint(0, 97, (21,), generator=g).tolist()
    prompt = torch.randint(0, 97, (5,), generator=g).tolist()
    got = answers(model, tokens, prompt, 16)
    spread = torch.tensor(got["logits"]).std().item()
    assert spread > 0.5, f"logits with a spread of {spread} would show no fault"
    return {"tokens": tokens, "prompt": prompt, **got}


def accepted(out):
    save(out, "plain", make())
    folder = save(out, "shards", make(seed=2), max_shard_size="20KB")
    assert os.path.exists(os.path.join(folder, "model.safetensors.index.json"))
    save(out, "bf16", make(seed=3).to(torch.bfloat16))
    save(out, "fp16", make(seed=4).to(torch.float16))
    save(out, "inner", make(seed=5, n_inner=40))
    save(out, "eps", make(seed=6, layer_norm_epsilon=0.01))
    save(out, "tanh", make(seed=7, activation_function="gelu_pytorch_tanh"))
    save(out, "heads", make(seed=8, n_head=1, n_layer=1))

    # The model without its head: no prefix.
    save(out, "base", make(GPT2Model, seed=9))

    # As the first files were: no prefix, masks, and the head beside the table.
    model = make(seed=10)
    folder = save(out, "first", model)
    state = {k.removeprefix("transformer."): v.contiguous().clone() for k, v in model.state_dict().items()}
    for i in range(SIZE["n_layer"]):
        state[f"h.{i}.attn.bias"] = torch.tril(torch.ones(24, 24)).view(1, 1, 24, 24)
        state[f"h.{i}.attn.masked_bias"] = torch.tensor(-1e4)
    state["lm_head.weight"] = state["wte.weight"].clone()
    safetensors.torch.save_file(state, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})

    # Two tables of the same values.
    model = make(seed=11, tie_word_embeddings=False)
    with torch.no_grad():
        model.lm_head.weight.copy_(model.transformer.wte.weight)
    save(out, "untied-equal", model)


def refused(out):
    def no(says):
        return {"refused": says}

    save(out, "untied", make(tie_word_embeddings=False), no("lm_head.weight differs from transformer.wte.weight"))
    save(out, "gelu", make(activation_function="gelu"), no('activation_function is "gelu"'))
    save(out, "layers", make(scale_attn_by_inverse_layer_idx=True), no("scale_attn_by_inverse_layer_idx"))
    save(out, "unscaled", make(scale_attn_weights=False), no("scale_attn_weights"))
    save(out, "upcast", make(reorder_and_upcast_attn=True), no("reorder_and_upcast_attn"))
    save(out, "cross", make(add_cross_attention=True), no("add_cross_attention"))
    save(out, "classifier", make(GPT2ForSequenceClassification, num_labels=3, pad_token_id=0), no("score.weight"))
    save(out, "other", transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4)), no('model_type is "llama"'))


if __name__ == "__main__":
    accepted(sys.argv[1])
    refused(sys.argv[1])
    print(f"transformers {transformers.__version__}, torch {torch.__version__}, safetensors {safetensors.__version__}")
