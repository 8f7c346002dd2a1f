package kernels

import (
	"zeroshard/device"
	"zeroshard/prng"
)

// Buffer is device.Buffer: all operands are row-major windows on device memory.
type Buffer = device.Buffer

// Pool runs parts of one task at the same time. Kernels split outputs over it, never sums, so the number of threads
// does not change a bit.
type Pool interface {
	Threads() int
	// Run calls t.Part(0) … t.Part(parts-1), each once, and returns when all are done.
	Run(parts int, t Task)
}

// Task is work in parts: an interface and not a func, so that kernels can reuse one and allocate nothing.
// An alias, so that pools need not import this package.
type Task = interface{ Part(i int) }

// Vector is the arithmetic that the engine calls on flat parameters. Lengths of operands are equal unless said.
// A Vector serves one stream: calls come from one goroutine at a time.
type Vector interface {
	// Zero sets dst to zero.
	Zero(s device.Stream, dst Buffer)
	// Add sets dst = a + b, rounded once. dst may be a or b. All fp32 (later: 16-bit operands are widened).
	Add(s device.Stream, dst, a, b Buffer)
	// Cast converts between fp32, bf16 and fp16, to nearest even; NaN stays a (quiet) NaN.
	Cast(s device.Stream, dst, src Buffer)
	// SumSquares adds the squares of x to the exact accumulator acc ([exact.Words] uint64): each grain of 128 elements,
	// counted from x's start, is summed in float64 in a fixed order, and the grain sums are added exactly, so the
	// result does not depend on how x is cut at grains. Where a grain sum is not finite, acc is marked with tag
	// (the smallest tag that is not 0 stays).
	SumSquares(s device.Stream, acc, x Buffer, tag uint32)
	// AdamW updates one piece of a flat parameter.
	AdamW(s device.Stream, a AdamW)
	// SGD updates one piece of a flat parameter.
	SGD(s device.Stream, a SGD)
}

// AdamW is one call: with g' = G·scale,
//
//	M = β₁M + (1−β₁)g'   V = β₂V + (1−β₂)g'²   P = P − LR·(Decay·P + (M/C1) / (√(V/C2) + Eps))
//
// M and V below 2⁻¹²⁶ become 0 (they would decay through the denormals, where vector units are slow). Control is two fp32 on the
// device: scale, and skip (nonzero: do nothing at all). Source: Loshchilov and Hutter,
// arXiv 1711.05101 (decoupled decay, as PyTorch's AdamW).
type AdamW struct {
	P, G, M, V, Control          Buffer
	LR, Beta1, Beta2, Eps, Decay float32
	C1, C2                       float32 // bias corrections 1−β₁ᵗ, 1−β₂ᵗ
}

// SGD is one call: with g' = G·scale + Decay·P, M = Momentum·M + g' and P = P − LR·M; without M (empty): P = P − LR·g'.
// As PyTorch's SGD with dampening 0.
type SGD struct {
	P, G, M, Control    Buffer
	LR, Momentum, Decay float32
}

// Net is the arithmetic that models call. Sums run in an order fixed by shape: never by thread count, alignment or other
// rows of the batch. A Net serves one stream.
//
// Shapes are written (rows, columns). N is rows of tokens, that is B·T. "Add" means dst += result, else dst = result.
type Net interface {
	// Scratch is bytes of device memory that the backend needs beside the operands, at most, per rank: constant.
	Scratch() int64

	// MatMul computes C (M,N) from A and B, see the struct.
	MatMul(s device.Stream, m MatMul)
	// BiasGrad: db (n) = column sums of dy (rows,n), rows in ascending order.
	BiasGrad(s device.Stream, db, dy Buffer, rows, n int, add bool)
	// Embed: out (N,d) = table (V,d)[tokens] + pos (T,d); pos may be empty.
	Embed(s device.Stream, e Embed)
	// EmbedBackward: table[tokens[i]] += dout[i] and pos[i mod T] += dout[i], one after the other, i ascending. Always adds.
	EmbedBackward(s device.Stream, e Embed)
	// LayerNorm: y = (x−mean)·rstd·w + b by rows of d; b may be empty. Writes stats (rows, 2: mean, rstd) unless Known, when
	// it reads them.
	LayerNorm(s device.Stream, l LayerNorm)
	// LayerNormBackward: dx (= or +=, see AddX), dw, db from dy, x, w, stats.
	LayerNormBackward(s device.Stream, l LayerNormBackward)
	// Attention: causal self-attention of heads side by side.
	Attention(s device.Stream, a Attention)
	// AttentionBackward: dqkv from dout, recomputing the probabilities from lse.
	AttentionBackward(s device.Stream, a AttentionBackward)
	// GELU, tanh form: y = x/2·(1+tanh(√(2/π)(x+0.044715x³))).
	GELU(s device.Stream, y, x Buffer)
	// GELUBackward: dx = dy·GELU'(x), and y = GELU(x) in the same pass where y is not empty. dx may be dy.
	GELUBackward(s device.Stream, dx, y, dy, x Buffer)
	// Sum: dst = a + b.
	Sum(s device.Stream, dst, a, b Buffer)
	// Dropout: dst[i] = x[i]·(1/(1−p)) where the i-th uniform number of key is ≥ p, else 0. p = 0 copies. dst may be x. Its own
	// backward.
	Dropout(s device.Stream, dst, x Buffer, p float32, key prng.Key)
	// CrossEntropy, in place: logits (rows,V) become d(loss sum)/d(logits)·scale; loss[0] += sum of −log softmax at targets,
	// loss[1] += number of valid targets, both fp64. Targets < 0 are ignored (their gradient row is zero). Rows ascend.
	// With Grad false the logits are left as they are.
	CrossEntropy(s device.Stream, c CrossEntropy)
	// EmbedNext: Embed of rows that continue texts, see the struct.
	EmbedNext(s device.Stream, e EmbedNext)
	// AttentionNext: Attention of rows that continue texts, over keys and values that a cache holds. It appends theirs.
	AttentionNext(s device.Stream, a AttentionNext)
	// PickRows: dst (B,d) = x (B·T,d) at each sequence's row whose target is ≥ 0 (the last such row; the last row where none is).
	PickRows(s device.Stream, dst, x, targets Buffer, seq, d int)
}

// MatMul is C (M,N) = op(A) (M,K) · op(B) (K,N), + Bias (N) by rows if not empty, += C if Add. op transposes as stored: with
// TransA, A is (K,M); with TransB, B is (N,K). Rows are contiguous. Each element is one chain over k ascending in fp32, which
// starts from C if Add (plus Bias), else from Bias, else from 0: so a product cut along K and added up part by part has the same bits.
// Whether a link is rounded once (fused) or twice is the backend's to say. Sizes are ints: products of shapes beyond 2³¹ are in range.
type MatMul struct {
	C, A, B, Bias       Buffer
	M, N, K             int
	TransA, TransB, Add bool
}

// Embed is one call of Embed (Out is written) or EmbedBackward (Out is dout; Table and Pos are gradients).
type Embed struct {
	Out, Table, Pos, Tokens Buffer // (B·T,d), (V,d), (T,d) or empty, (B·T)
	Batch, Seq, Dim         int
}

// LayerNorm is one call. Y, X (Rows,Dim); W, B (Dim); Stats (Rows,2).
type LayerNorm struct {
	Y, X, W, B, Stats Buffer
	Rows, Dim         int
	Eps               float32
	Known             bool // Stats hold mean and rstd already
}

// LayerNormBackward is one call. DX may be DY. DB may be empty.
type LayerNormBackward struct {
	DX, DW, DB, DY, X, W, Stats Buffer
	Rows, Dim                   int
	AddX, AddW                  bool // DX +=; DW and DB +=
}

// Attention is one call. QKV (B·T, 3·Heads·Dim): q, k, v of all heads side by side, as GPT-2's c_attn. Out (B·T, Heads·Dim).
// LSE (B, Heads, T): log-sum-exp of each query's scores (written unless empty). Scores are q·k/√Dim. Drop is attention dropout.
type Attention struct {
	Out, QKV, LSE          Buffer
	Batch, Seq, Heads, Dim int
	Drop                   float32
	Key                    prng.Key
}

// AttentionBackward is one call: DQKV (written whole) from DOut, with QKV, LSE and Out of the forward.
type AttentionBackward struct {
	DQKV, DOut Buffer
	Attention
}

// EmbedNext is one call. Of each sequence's Seq rows the first few continue its text, the others are padding: Spans (B, 2) int32 holds, for
// each sequence, the place in the text of its first row, and how many rows there are, 0 to Seq. Tokens (B·Seq), Pos (places, d) or empty;
// Out (B·Seq, d) is zero in rows of padding.
type EmbedNext struct {
	Out, Table, Pos, Tokens, Spans Buffer
	Batch, Seq, Dim                int
}

// AttentionNext is one call. QKV (B·Seq, 3·Heads·Dim) and Out (B·Seq, Heads·Dim) are as in Attention, Spans as in EmbedNext. Cache holds keys
// (B, Heads, Dim, Room), then values (B, Heads, Room, Dim). Keys and values of the rows are put at their places, and a row sees all places
// up to its own: its bits in Out are those of Attention over the whole text, however it is cut into calls. What lies at later places does
// not matter, Out is zero in rows of padding, and no row may stand past Room.
type AttentionNext struct {
	Out, QKV, Cache, Spans       Buffer
	Batch, Seq, Room, Heads, Dim int
}

// CrossEntropy is one call. Logits (Rows,Vocab), Targets (Rows) int32, Loss 2 fp64, Scale 1 fp32 or empty for 1.
type CrossEntropy struct {
	Logits, Targets, Loss, Scale Buffer
	Rows, Vocab                  int
	Grad                         bool
}

// Backend is all the arithmetic of one rank.
type Backend interface {
	Vector
	Net
}
