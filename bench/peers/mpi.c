/* All-gather (in place) and reduce-scatter of fp32 on MPI. Prints a JSON object for each size and call: the median seconds of the slowest
 * rank. A reduce-scatter has two calls, of which a library may serve one better.
 *
 *   mpicc -O3 -march=native mpi.c -o mpi && mpirun -np 2 ./mpi 1048576 4194304 ...
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { GATHER, SCATTER_BLOCK, SCATTER, CALLS };

static const char *const verb[CALLS] = {"all-gather", "reduce-scatter", "reduce-scatter"};
static const char *const name[CALLS] = {"MPI_Allgather", "MPI_Reduce_scatter_block", "MPI_Reduce_scatter"};

static int ascending(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv) {
	int ranks, rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	int *counts = malloc(ranks * sizeof *counts);
	for (int arg = 1; arg < argc; arg++) {
		long size = atol(argv[arg]);
		int n = size / 4 / ranks;
		float *full = malloc((size_t)n * ranks * 4), *part = malloc((size_t)n * 4);
		for (long i = 0; i < (long)n * ranks; i++)
			full[i] = rank + 1;
		for (int i = 0; i < n; i++)
			part[i] = 0;
		for (int r = 0; r < ranks; r++)
			counts[r] = n;
		long fit = (256L << 20) / size;
		int turns = fit < 3 ? 3 : fit > 30 ? 30 : fit;
		for (int call = 0; call < CALLS; call++) {
			double *seconds = malloc(turns * sizeof *seconds);
			for (int t = -3; t < turns; t++) {
				MPI_Barrier(MPI_COMM_WORLD);
				double start = MPI_Wtime(), took;
				if (call == GATHER)
					MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, full, n, MPI_FLOAT, MPI_COMM_WORLD);
				else if (call == SCATTER_BLOCK)
					MPI_Reduce_scatter_block(full, part, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
				else
					MPI_Reduce_scatter(full, part, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
				took = MPI_Wtime() - start;
				MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
				if (t >= 0)
					seconds[t] = took;
			}
			qsort(seconds, turns, sizeof *seconds, ascending);
			if (rank == 0) {
				printf("{\"verb\": \"%s\", \"call\": \"%s\", \"size\": %ld, \"seconds\": %g}\n", verb[call], name[call], size, seconds[turns / 2]);
				fflush(stdout);
			}
			free(seconds);
		}
		free(full);
		free(part);
	}
	MPI_Finalize();
	return 0;
}
