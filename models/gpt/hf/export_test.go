package hf

var Settle = settle
