#include "coscheduling/rank.h"

#include <cstdlib>

#include "coscheduling/node_network.h"
#include "coscheduling/rank_link.h"

namespace swapd::bench {
namespace {

std::uint32_t word_of(JobCell& cell) { return __atomic_load_n(&cell.word, __ATOMIC_ACQUIRE); }

// The clock costs more than a look: it is read after some looks only.
constexpr int looks_between_clocks = 16;

bool spin_for(JobCell& cell, std::uint32_t seen, std::int64_t spin_ns) {
  const std::int64_t until = job_now_ns() + spin_ns;
  do {
    for (int i = 0; i < looks_between_clocks; ++i) {
      if (word_of(cell) != seen) return true;
      job_pause();
    }
  } while (job_now_ns() < until);
  return false;
}

// Rank 0 and rank 1, 2 and 3, …: each pair has a token of its own. A rank works whenever it has the token.
void exchange_tokens(JobArea& area, std::uint32_t self) {
  const std::uint32_t mate = self ^ 1U;
  const auto receive = static_cast<JobReceive>(area.receive);
  for (std::uint64_t round = 0; round < area.rounds; ++round) {
    const auto seen = static_cast<std::uint32_t>(round);
    if (self % 2 != 0) await_change(area.inbox[self], seen, receive, area.spin_ns);
    job_work(area.turns);
    job_set(&area.inbox[mate], seen + 1);
    if (self % 2 == 0) await_change(area.inbox[self], seen, receive, area.spin_ns);
    job_round_done(&area, self, round + 1);
  }
}

void meet_at_barriers(JobArea& area, std::uint32_t self) {
  for (std::uint64_t round = 0; round < area.rounds; ++round) {
    job_work(area.turns);
    pass_barrier(area);
    job_round_done(&area, self, round + 1);
  }
}

// The same of two ranks on two nodes. At a barrier each tells the other that it is there.
bool exchange_messages(JobArea& area, std::uint32_t self, RankLink& link) {
  const auto receive = static_cast<JobReceive>(area.receive);
  const bool is_token = area.pattern == pattern_latency;
  for (std::uint64_t round = 0; round < area.rounds; ++round) {
    if (is_token && self == 1 && !link.receive(receive, area.spin_ns)) return false;
    job_work(area.turns);
    if (!link.send()) return false;
    if ((!is_token || self == 0) && !link.receive(receive, area.spin_ns)) return false;
    job_round_done(&area, self, round + 1);
  }
  return true;
}

int run_on_a_node(JobArea& area, std::uint32_t self) {
  const std::string address = NodeNetwork::address(0);
  auto link = self == 0 ? RankLink::take(address) : RankLink::connect(address);
  if (!link) {
    job_say(&area, self, rank_failed);
    return 1;
  }
  job_begin(&area, self);
  if (!exchange_messages(area, self, *link)) {
    job_say(&area, self, rank_failed);
    return 1;
  }
  job_finish(&area, self);
  return 0;
}

}  // namespace

void await_change(JobCell& cell, std::uint32_t seen, JobReceive receive, std::int64_t spin_ns) {
  switch (receive) {
    case receive_spin:
      while (word_of(cell) == seen) job_pause();
      return;
    case receive_yield:
      while (word_of(cell) == seen) ::sched_yield();
      return;
    case receive_spin_block:
      if (spin_for(cell, seen, spin_ns)) return;
      break;
    case receive_block:
      break;
  }
  job_sleep(&cell, seen);
}

void pass_barrier(JobArea& area) {
  const std::uint32_t seen = word_of(area.generation);
  if (__atomic_add_fetch(&area.arrived.word, 1, __ATOMIC_SEQ_CST) == area.ranks) {
    __atomic_store_n(&area.arrived.word, 0, __ATOMIC_SEQ_CST);
    job_set(&area.generation, seen + 1);
    return;
  }
  await_change(area.generation, seen, static_cast<JobReceive>(area.receive), area.spin_ns);
}

int run_cosched_rank(int argc, char** argv) {
  if (argc != 4) return 2;
  JobArea* area = job_map(argv[2]);
  const auto self = static_cast<std::uint32_t>(std::strtoul(argv[3], nullptr, 10));
  if (area == nullptr || self >= area->ranks) return 1;
  job_pin(area, self);
  if (area->on_nodes != 0) return run_on_a_node(*area, self);
  job_begin(area, self);
  if (area->pattern == pattern_latency) {
    exchange_tokens(*area, self);
  } else {
    meet_at_barriers(*area, self);
  }
  job_finish(area, self);
  return 0;
}

int run_cosched_competitor(int argc, char** argv) {
  if (argc != 4) return 2;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(std::strtoul(argv[2], nullptr, 10), &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) return 1;
  ::alarm(static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10)));
  for (;;) job_work(UINT64_MAX);
}

}  // namespace swapd::bench
