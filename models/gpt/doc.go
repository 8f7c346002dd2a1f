// Package gpt is GPT-2 as units of computation: pre-norm blocks, learned positions, tanh-GELU, one table for the embedding and the
// logits (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019).
//
//	embed   root        x = wte[token] + wpe[position]
//	h.i     h.i         x = x + attn(ln_1(x));  x = x + mlp(ln_2(x))
//	loss    root        cross-entropy of ln_f(x)·wteᵀ, in chunks of tokens
//
// The package never allocates device memory, never waits for the device, and knows no rank, stage or world.
//
//  1. Names, shapes and orientation of parameters are Hugging Face's: matrices are input-major (Conv1D), y = x·W.
//  2. Biases and norms are exempt from weight decay; every matrix, the embeddings too, decays (as in nanoGPT).
//  3. What a unit asks for is what it uses: every element of Out, Saved, Work and BackWork is written.
//  4. Randomness comes from Call.Key alone; outside Train there is none.
package gpt
