/* A rank of `swapbench cosched` in MPI: MPI_Send and MPI_Recv of a token, or MPI_Barrier. Started by mpirun; the
 * harness tells it what to do through the area (job_area.h). */
#include <mpi.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "job_area.h"

enum { token_size = 128 }; /* as in the thesis [DCS97 §5.2.1] */

static void exchange_tokens(struct JobArea* area, int self) {
  char token[token_size] = {0};
  const int mate = self ^ 1;
  for (uint64_t round = 0; round < area->rounds; ++round) {
    if (self % 2 != 0) MPI_Recv(token, token_size, MPI_CHAR, mate, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    job_work(area->turns);
    MPI_Send(token, token_size, MPI_CHAR, mate, 0, MPI_COMM_WORLD);
    if (self % 2 == 0) MPI_Recv(token, token_size, MPI_CHAR, mate, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    job_round_done(area, (uint32_t)self, round + 1);
  }
}

static void meet_at_barriers(struct JobArea* area, int self) {
  for (uint64_t round = 0; round < area->rounds; ++round) {
    job_work(area->turns);
    MPI_Barrier(MPI_COMM_WORLD);
    job_round_done(area, (uint32_t)self, round + 1);
  }
}

int main(int argc, char** argv) {
  int self = 0, ranks = 0;
  struct JobArea* area = argc == 2 ? job_map(argv[1]) : NULL;
  if (area == NULL) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &self);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != (int)area->ranks) return 2;
  job_pin(area, (uint32_t)self);
  /* Connections are made with the first messages. */
  MPI_Barrier(MPI_COMM_WORLD);
  job_begin(area, (uint32_t)self);
  if (area->pattern == pattern_latency) {
    exchange_tokens(area, self);
  } else {
    meet_at_barriers(area, self);
  }
  job_finish(area, (uint32_t)self);
  MPI_Finalize();
  return 0;
}
