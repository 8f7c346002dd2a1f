package collectives

import "math/bits"

// compiler writes the program of one fold.
type compiler struct {
	fold  *Fold
	stack []value
	sums  []sum
}

// value is a node on the stack: its number of leaves, and where it comes from. The sums are numbered, From = Temp and I
// = number, until place gives them memory.
type value struct {
	Operand
	leaves int
}

// sum is an addition whose result has no place yet.
type sum struct{ a, b Operand }

func (c *compiler) run() {
	f := c.fold
	first, parts := f.Index*f.Size, (f.Leaves-1)/f.Window+1
	c.push(first)
	for r := range min(f.Size, parts-first) {
		f.Present[r] = true
		c.stack = append(c.stack, value{Operand{Part, r}, min(f.Window, f.Leaves-(first+r)*f.Window)})
		for c.siblings() {
			c.merge()
		}
	}
	if parts-first <= f.Size { // the last window
		for len(c.stack) > 1 {
			c.merge()
		}
	}
	f.Out = len(c.stack)
	c.place()
}

// push puts the carry after parts parts on the stack: one slot for each bit, the highest first.
func (c *compiler) push(parts int) {
	for rest := parts; rest > 0; c.fold.In++ {
		top := 1 << (bits.Len(uint(rest)) - 1)
		c.stack = append(c.stack, value{Operand{InSlot, c.fold.In}, top * c.fold.Window})
		rest -= top
	}
}

// siblings reports whether the two topmost nodes are halves of one node. A last part of fewer leaves is the right edge and waits
// for the end.
func (c *compiler) siblings() bool {
	n := len(c.stack)
	return n > 1 && c.stack[n-1].leaves == c.stack[n-2].leaves
}

func (c *compiler) merge() {
	n := len(c.stack)
	a, b := c.stack[n-2], c.stack[n-1]
	c.stack = append(c.stack[:n-2], value{Operand{Temp, len(c.sums)}, a.leaves + b.leaves})
	c.sums = append(c.sums, sum{a.Operand, b.Operand})
}

// place turns sums into operations: what rests on the stack goes to Out, everything else to temporaries. A sum is read exactly
// once, by the sum that it is merged into, so its temporary is free from there on, and for that very result too.
func (c *compiler) place() {
	f := c.fold
	homes := make([]Operand, len(c.sums)) // where each sum lies
	for i, v := range c.stack {
		if v.From == Temp {
			homes[v.I] = Operand{OutSlot, i}
		}
	}
	var free []int
	read := func(x Operand) Operand {
		if x.From != Temp {
			return x
		}
		free = append(free, homes[x.I].I)
		return homes[x.I]
	}
	for i, s := range c.sums {
		op := Op{A: read(s.a), B: read(s.b)}
		if homes[i].From == Nothing {
			if len(free) == 0 {
				free = append(free, f.Temps)
				f.Temps++
			}
			homes[i] = Operand{Temp, free[len(free)-1]}
			free = free[:len(free)-1]
		}
		op.Dst = homes[i]
		f.Ops = append(f.Ops, op)
	}
	for i, v := range c.stack {
		if v.From != Temp {
			f.Ops = append(f.Ops, Op{Dst: Operand{OutSlot, i}, A: v.Operand})
		}
	}
}
