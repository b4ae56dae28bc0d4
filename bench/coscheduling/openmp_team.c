/* A parallel job of `swapbench cosched` in OpenMP: a team of threads that compute and meet at a barrier; for the
 * latency test two threads work in turns, with a barrier after each. How they wait is OMP_WAIT_POLICY's and
 * GOMP_SPINCOUNT's. */
#include <omp.h>
#include <stdlib.h>

#include "job_area.h"

static void work_in_turns(struct JobArea* area, uint32_t self) {
  for (uint64_t round = 0; round < area->rounds; ++round) {
    for (uint32_t turn = 0; turn < 2; ++turn) {
      if (self % 2 == turn) job_work(area->turns);
#pragma omp barrier
    }
    job_round_done(area, self, round + 1);
  }
}

static void meet_at_barriers(struct JobArea* area, uint32_t self) {
  for (uint64_t round = 0; round < area->rounds; ++round) {
    job_work(area->turns);
#pragma omp barrier
    job_round_done(area, self, round + 1);
  }
}

int main(int argc, char** argv) {
  struct JobArea* area = argc == 2 ? job_map(argv[1]) : NULL;
  if (area == NULL) return 2;
#pragma omp parallel num_threads((int)area->ranks)
  {
    const uint32_t self = (uint32_t)omp_get_thread_num();
    job_pin(area, self);
    job_begin(area, self);
    if (area->pattern == pattern_latency) {
      work_in_turns(area, self);
    } else {
      meet_at_barriers(area, self);
    }
    job_finish(area, self);
  }
  return 0;
}
