// Package optim has element-wise optimizers on pieces of flat parameters, and learning-rate schedules. It never looks at a whole
// matrix and keeps no state of its own.
//
//  1. An element's update depends on that element's values and on Hyper alone, so it does not matter who owns it.
//  2. What changes from step to step is in Hyper; an Optimizer is a value.
package optim
