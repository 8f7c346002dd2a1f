// Package hf reads and writes folders in which Hugging Face's transformers keeps a GPT-2: config.json, and the weights in
// model.safetensors, or in several files under a model.safetensors.index.json.
//
// Parameters have the names, shapes and orientation of package gpt, which are the folder's own: matrices are input-major (Conv1D),
// so nothing is transposed. What differs between folders is bridged on reading:
//
//   - names may begin with "transformer." or not;
//   - the buffers h.i.attn.bias and h.i.attn.masked_bias are masks, not parameters, and are left out;
//   - lm_head.weight is left out where it equals wte.weight in every bit; where it differs the folder is refused, as package gpt has one table;
//   - n_positions counts where n_ctx says something else, n_inner null is 4·n_embd, and a missing field has transformers' default;
//   - F16, BF16 and F64 weights are widened to fp32, exactly, or are refused.
//
// Dropout is not the folder's to decide: Config has none, Folder.Dropout says what was configured.
//
//  1. What package gpt cannot compute (another activation, scaling by layer, cross-attention, a head of its own) is refused by name,
//     all reasons at once. A folder that opens gives the same function.
//  2. Open checks every name and shape: what is missing, too many, or of another shape is listed.
//  3. Weights are streamed. Neither side holds more than a few megabytes, whatever the model's size.
//  4. Write gives the whole folder or none: it appears under its name when all of it is on disk.
//  5. What Write writes depends on its arguments alone, and Open reads back the same bits (fp32), or the same rounded once (F16, BF16).
//  6. A model without biases is written with biases of zero, which add nothing: GPT-2's folders know no such option, and the folder reads as a model with biases.
package hf
