package cpu

// jobs are the tasks that the kernels give to the pool, one of each kind, reused: a Kernels makes one call at a time.
type jobs struct {
	matmul   matmulJob
	vector   vectorJob
	squares  squaresJob
	cast     castJob
	adamw    adamwJob
	sgd      sgdJob
	columns  columnsJob
	embed    embedJob
	norm     normJob
	normBack normBackJob
	attend   attendJob
	entropy  entropyJob
}

// tie gives each job its kernels.
func (j *jobs) tie(k *Kernels) {
	j.matmul.k, j.vector.k, j.squares.k, j.cast.k, j.adamw.k, j.sgd.k = k, k, k, k, k, k
	j.columns.k, j.embed.k, j.norm.k, j.normBack.k, j.attend.k, j.entropy.k = k, k, k, k, k, k
}
