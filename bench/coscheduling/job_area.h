/* What the ranks of a parallel job share with the harness: a memfd that each maps by path (/proc/PID/fd/N), so that a
 * launcher that closes descriptors does no harm. C as well as C++: mpi_rank.c and openmp_team.c read it too.
 *
 * Life of a rank: maps the area, notes its pid, says "ready", sleeps until `go`, does `rounds` rounds, notes the time,
 * says "done", and sleeps until it is told to end. It waits for the harness in futex(2), so that it uses no CPU time
 * before its work or after it. */
#pragma once

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { job_max_ranks = 64 };
enum JobPattern { pattern_latency, pattern_barrier };
enum JobReceive { receive_spin, receive_yield, receive_spin_block, receive_block };
enum JobGo { go_wait, go_run, go_end };
enum RankState { rank_starting, rank_ready, rank_done, rank_failed };

/* A word that changes, on a cache line of its own, and how many sleep until it does. */
struct JobCell {
  uint32_t word, sleepers;
} __attribute__((aligned(64)));

struct JobRank {
  int32_t pid, tid; /* tid: of the thread, where one process has several ranks */
  uint32_t state;   /* RankState */
  uint64_t rounds;  /* done by now */
  int64_t ended_ns; /* CLOCK_MONOTONIC */
} __attribute__((aligned(64)));

struct JobArea {
  /* What the harness has said before the job starts. */
  uint32_t pattern, receive, ranks, pinned, cpu_count, alarm_s;
  uint32_t on_nodes; /* each of two ranks is on a node of its own: they meet by messages (rank_link.h) */
  int32_t cpus[job_max_ranks];
  uint64_t rounds;
  uint64_t turns; /* of job_work(), a rank and round */
  int64_t spin_ns;
  struct JobCell go;                                        /* JobGo */
  struct JobCell changes;                                   /* counts what ranks say; the harness sleeps on it */
  struct JobCell arrived, generation, inbox[job_max_ranks]; /* of our own ranks: barrier, tokens */
  struct JobRank rank[job_max_ranks];
};

static inline void job_pause(void) { __builtin_ia32_pause(); }

/* Work of a constant length, without memory or system calls. */
static inline void job_work(uint64_t turns) {
  for (uint64_t i = 0; i < turns; ++i) __asm__ volatile("" : : "r"(i));
}

static inline int64_t job_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline long job_futex(uint32_t* word, int operation, uint32_t value, const struct timespec* at_most) {
  return syscall(SYS_futex, word, operation, value, at_most, NULL, 0);
}

/* Sleeps until the word is another than `seen`. */
static inline void job_sleep(struct JobCell* cell, uint32_t seen) {
  __atomic_add_fetch(&cell->sleepers, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&cell->word, __ATOMIC_SEQ_CST) == seen) job_futex(&cell->word, FUTEX_WAIT, seen, NULL);
  __atomic_sub_fetch(&cell->sleepers, 1, __ATOMIC_SEQ_CST);
}

static inline void job_wake(struct JobCell* cell) {
  if (__atomic_load_n(&cell->sleepers, __ATOMIC_SEQ_CST) != 0) job_futex(&cell->word, FUTEX_WAKE, INT32_MAX, NULL);
}

static inline void job_set(struct JobCell* cell, uint32_t value) {
  __atomic_store_n(&cell->word, value, __ATOMIC_SEQ_CST);
  job_wake(cell);
}

/* Null: not to be had. */
static inline struct JobArea* job_map(const char* path) {
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return NULL;
  void* where = mmap(NULL, sizeof(struct JobArea), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return where == MAP_FAILED ? NULL : (struct JobArea*)where;
}

static inline void job_say(struct JobArea* area, uint32_t rank, enum RankState state) {
  __atomic_store_n(&area->rank[rank].state, (uint32_t)state, __ATOMIC_SEQ_CST);
  __atomic_add_fetch(&area->changes.word, 1, __ATOMIC_SEQ_CST);
  job_futex(&area->changes.word, FUTEX_WAKE, INT32_MAX, NULL);
}

/* The calling thread goes to its CPU; so does each rank of `pinned`. */
static inline void job_pin(const struct JobArea* area, uint32_t rank) {
  cpu_set_t set;
  if (!area->pinned || area->cpu_count == 0) return;
  CPU_ZERO(&set);
  CPU_SET((size_t)area->cpus[rank % area->cpu_count], &set);
  (void)sched_setaffinity(0, sizeof set, &set);
}

/* Says "ready" and sleeps until the job begins. */
static inline void job_begin(struct JobArea* area, uint32_t rank) {
  area->rank[rank].pid = getpid();
  area->rank[rank].tid = (int32_t)syscall(SYS_gettid);
  alarm(area->alarm_s);
  job_say(area, rank, rank_ready);
  job_sleep(&area->go, go_wait);
}

static inline void job_round_done(struct JobArea* area, uint32_t rank, uint64_t rounds) {
  __atomic_store_n(&area->rank[rank].rounds, rounds, __ATOMIC_RELAXED);
}

/* Says "done" and sleeps until it is to end. */
static inline void job_finish(struct JobArea* area, uint32_t rank) {
  area->rank[rank].ended_ns = job_now_ns();
  job_say(area, rank, rank_done);
  job_sleep(&area->go, go_run);
}
