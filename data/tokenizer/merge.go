package tokenizer

import "container/heap"

// part is a token in a piece while it is merged: its id, and the bytes that it covers.
type part struct{ id, start, end int32 }

// merges says what two neighbours become, and in what order that is done: the lowest rank first.
type merges func(piece string, left, right part) (rank, id int32, ok bool)

// merge appends the ids of a piece to dst: its bytes, whose ids are given, where again and again the pair of lowest rank is merged, of
// equal ones the first. A heap finds it, so that a piece of n bytes takes n·log n steps.
func (m merges) merge(dst []int32, piece string, bytes *[256]int32) []int32 {
	n := len(piece)
	parts := make([]part, n) // by first byte; the end of what was merged into its left neighbour is 0
	before := make([]int32, n)
	for i := range parts {
		parts[i] = part{bytes[piece[i]], int32(i), int32(i + 1)}
		before[i] = int32(i - 1)
	}
	var todo pairs
	look := func(left int32) {
		if left < 0 || parts[left].end == int32(n) {
			return
		}
		l, r := parts[left], parts[parts[left].end]
		if rank, id, ok := m(piece, l, r); ok {
			heap.Push(&todo, pair{rank, id, l, r})
		}
	}
	for i := range parts {
		look(int32(i))
	}
	for len(todo) > 0 {
		p := heap.Pop(&todo).(pair)
		if parts[p.left.start] != p.left || parts[p.right.start] != p.right {
			continue // one of the two has been merged since
		}
		parts[p.right.start].end = 0
		parts[p.left.start] = part{p.id, p.left.start, p.right.end}
		if p.right.end < int32(n) {
			before[p.right.end] = p.left.start
		}
		look(p.left.start)
		look(before[p.left.start])
	}
	for at := int32(0); at < int32(n); at = parts[at].end {
		dst = append(dst, parts[at].id)
	}
	return dst
}

// pair is two neighbours that can be merged.
type pair struct {
	rank, id    int32
	left, right part
}

// pairs is a heap of them, by rank, then by place.
type pairs []pair

func (p pairs) Len() int { return len(p) }

func (p pairs) Less(i, j int) bool {
	if p[i].rank != p[j].rank {
		return p[i].rank < p[j].rank
	}
	return p[i].left.start < p[j].left.start
}

func (p pairs) Swap(i, j int) { p[i], p[j] = p[j], p[i] }

func (p *pairs) Push(x any) { *p = append(*p, x.(pair)) }

func (p *pairs) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}
