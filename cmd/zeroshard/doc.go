// Command zeroshard trains GPT-style models whose parameters, gradients and optimizer state are sharded over ranks, and prints the plan by
// which it does so.
//
//	zeroshard prepare  turns texts into token files
//	zeroshard train    trains; the defaults learn Newton's English on two ranks at stage 3
//	zeroshard plan     prints what a step would do and need, without training
//	zeroshard bench    measures what is reached of the machine's limit
//	zeroshard version  says what this binary is
//
// Results go to stdout, progress and errors to stderr. Exit codes are in exit.go.
package main
