"""What both directions share: how a model is asked."""

import json

import torch

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)


def answers(model, tokens, prompt, new):
    """Logits after each prefix of all tokens but the last, the loss of predicting each next one, and the greedy continuation."""
    model = model.float().eval()
    with torch.no_grad():
        x = torch.tensor([tokens])
        logits = model(x[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits[0], x[0, 1:])
        text = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                              max_new_tokens=new, do_sample=False, eos_token_id=None, pad_token_id=0)
    return {"logits": logits[0].tolist(), "loss": loss.item(), "greedy": text[0, len(prompt):].tolist()}


def write_json(path, value):
    with open(path, "w") as f:
        json.dump(value, f)
