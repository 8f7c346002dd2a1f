// Package perceptron is a language model of one hidden layer over the last K tokens (Bengio et al., "A Neural Probabilistic Language
// Model", 2003), written as units: what a model of one's own looks like to the engine.
//
//	embed   table         x(t) = table[token t]
//	hidden  hidden        y(t) = GELU(Σⱼ x(t−j)·W1ⱼ + b1)·W2 + b2, j = 0 … K−1; before the start of a sequence x is 0
//	loss    table, bias   cross-entropy of y(t)·tableᵀ + bias
//
// The units never learn how many ranks there are, what is sharded, or when a flat parameter is gathered. They allocate nothing:
// what they need they state in Sizes. A gradient buffer is empty where its parameter is frozen.
package perceptron
