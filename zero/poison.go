package zero

// poison fills buffers with NaN as soon as their last user is done, so that a late reader shows. Under -tags invariants only.
//
// The fill goes to the lane of the last user, behind it and behind the users on other lanes, and that op's event is recorded anew:
// whoever waits for the op waits for the fill.
type poison struct {
	users [][]int // by transient buffer: ops that use it, in order
	dies  [][]int // by op: buffers whose last user it is
}

func newPoison(p *Plan) poison {
	d := poison{users: make([][]int, len(p.Bufs)), dies: make([][]int, len(p.Ops))}
	for i := range p.Ops {
		if p.Ops[i].Lane == Host {
			continue
		}
		p.Ops[i].uses(func(b int, _ bool) {
			if !p.Bufs[b].Resident && !p.Bufs[b].Keep {
				d.users[b] = append(d.users[b], i)
			}
		})
	}
	for b, u := range d.users {
		if len(u) > 0 {
			last := u[len(u)-1]
			d.dies[last] = append(d.dies[last], b)
		}
	}
	return d
}

func (d *poison) after(x *exec, i int) {
	for _, b := range d.dies[i] {
		s := x.e.streams[x.p.Ops[i].Lane]
		for _, u := range d.users[b] {
			if x.p.Ops[u].Lane != x.p.Ops[i].Lane {
				s.Wait(x.done[u])
			}
		}
		raw := x.buffer(Ref{Buf: b}).Raw()
		s.Do("poison "+x.p.Bufs[b].Name, func() error {
			for k := range raw {
				raw[k] = 0xff
			}
			return nil
		})
		x.done[i] = s.Record()
	}
}
