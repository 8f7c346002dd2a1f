// Package zero trains a model under a ZeRO strategy: Compile turns (layout, model, strategy, mesh, options) into a plan, a list
// of named operations that one can print, diff, check and cost; Engine runs plans on one rank.
//
// It never allocates device memory outside New, never looks at a stage number (a strategy is data), and knows no model.
//
//  1. The plan is the same on every rank. What depends on the rank is data: its slice, its leaves.
//  2. The list order of a lane is its order of execution; Op.After is all the waiting there is between lanes.
//  3. Every buffer has one place; a place is reused only behind the waits that Check proves.
//  4. Bits do not depend on the strategy, the mesh, or any option that says "Bits: unchanged".
package zero
