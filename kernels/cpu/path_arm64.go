package cpu

func paths() []*path { return []*path{neon(), portable()} }

// neon has fast products. The rest is plain Go.
func neon() *path {
	p, g := portable(), set{}.tiles()
	p.name, p.multiply = "neon", g.multiply
	p.scores, p.lower, p.upper = multiplier(g.multiply).scores, multiplier(g.multiply).lower, multiplier(g.multiply).upper
	return p
}
