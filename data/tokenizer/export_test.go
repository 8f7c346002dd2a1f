package tokenizer

// Cut is LastCut's rule for byte-pair encodings.
var Cut = lastCut
