#include "sys/perf/state_sampler.h"

#include <asm/perf_regs.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace swapd::sys {
namespace {

constexpr Duration shortest_period = std::chrono::microseconds(100);

// The general registers. (Flags and segments say nothing more; a wait in memory changes none of these for good.)
constexpr std::uint64_t registers =
    (1ULL << PERF_REG_X86_AX) | (1ULL << PERF_REG_X86_BX) | (1ULL << PERF_REG_X86_CX) | (1ULL << PERF_REG_X86_DX) |
    (1ULL << PERF_REG_X86_SI) | (1ULL << PERF_REG_X86_DI) | (1ULL << PERF_REG_X86_BP) | (1ULL << PERF_REG_X86_SP) |
    (1ULL << PERF_REG_X86_IP) | (1ULL << PERF_REG_X86_R8) | (1ULL << PERF_REG_X86_R9) | (1ULL << PERF_REG_X86_R10) |
    (1ULL << PERF_REG_X86_R12) | (1ULL << PERF_REG_X86_R13) | (1ULL << PERF_REG_X86_R14) | (1ULL << PERF_REG_X86_R15);

std::uint64_t period_of(Duration period) {
  return static_cast<std::uint64_t>(std::max(period, shortest_period).count());
}

}  // namespace

StateSampler::StateSampler(Fd fd, PerfRing ring) : fd_(std::move(fd)), ring_(std::move(ring)) {}
StateSampler::~StateSampler() = default;

Result<std::unique_ptr<StateSampler>> StateSampler::open(pid_t tid, Duration period) {
  perf_event_attr attr{};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_TASK_CLOCK;
  attr.sample_period = period_of(period);
  attr.sample_type = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  attr.sample_regs_user = registers;
  attr.sample_stack_user = stack_bytes;
  auto fd = open_perf_event(attr, tid, -1);
  if (!fd) return std::move(fd).error().in("sampling a thread's registers");
  auto ring = PerfRing::map(fd->get(), 4);
  if (!ring) return std::move(ring).error().in("sampling a thread's registers");
  return std::unique_ptr<StateSampler>(new StateSampler(std::move(fd).value(), std::move(ring).value()));
}

void StateSampler::read(std::vector<StateSample>& out) {
  std::byte record[PerfRing::largest_record];
  while (ring_.next(record)) {
    const auto header = load_as<perf_event_header>(record);
    if (header.type != PERF_RECORD_SAMPLE) continue;
    StateSample sample;
    sample.in_user = (header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
    // FNV-1a, by words: the whole of the record is state, but for the few bytes of a dump that the kernel cut short.
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    for (std::size_t at = sizeof header; at + sizeof(std::uint64_t) <= header.size; at += sizeof(std::uint64_t))
      hash = (hash ^ load_as<std::uint64_t>(record + at)) * 0x100000001b3ULL ^ (hash >> 29);
    sample.state = hash;
    out.push_back(sample);
  }
}

void StateSampler::set_period(Duration period) {
  std::uint64_t ns = period_of(period);
  ::ioctl(fd_.get(), PERF_EVENT_IOC_PERIOD, &ns);
}

}  // namespace swapd::sys
