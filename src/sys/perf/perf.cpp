#include "sys/perf/perf.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace swapd::sys {
namespace {

constexpr std::uint64_t never = 1ULL << 60;  // ns; the kernel wants periods below 2^63

}  // namespace

SwitchWatch::SwitchWatch(Fd fd, PerfRing ring) : fd_(std::move(fd)), ring_(std::move(ring)) {}
SwitchWatch::~SwitchWatch() = default;

Result<std::unique_ptr<SwitchWatch>> SwitchWatch::open(pid_t tid) {
  perf_event_attr attr{};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;  // counts nothing: the switch records are what we want
  attr.context_switch = 1;
  attr.sample_id_all = 1;  // the time stamp goes to records that are no samples, too
  attr.sample_type = PERF_SAMPLE_TIME;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  // A switch record is no sample, so wakeup_events does not see it; the watermark, in bytes, does.
  attr.watermark = 1;
  attr.wakeup_watermark = 1;
  auto fd = open_perf_event(attr, tid, -1);
  if (!fd) return std::move(fd).error().in("watching a thread's context switches");
  auto ring = PerfRing::map(fd->get(), 1);
  if (!ring) return std::move(ring).error().in("watching a thread's context switches");
  return std::unique_ptr<SwitchWatch>(new SwitchWatch(std::move(fd).value(), std::move(ring).value()));
}

std::size_t SwitchWatch::read(SwitchRecord* out, std::size_t most) {
  std::byte record[PerfRing::largest_record];
  std::size_t seen = 0;
  while (most > 0 && ring_.next(record)) {
    const auto header = load_as<perf_event_header>(record);
    if (header.type != PERF_RECORD_SWITCH) continue;  // PERF_RECORD_LOST: the newest matter, and they come
    SwitchRecord& to = out[seen++ % most];
    to.time = Time(Duration(load_as<std::int64_t>(record + sizeof header)));
    to.out = (header.misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;
    to.preempted = (header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0;
  }
  if (seen <= most) return seen;
  std::rotate(out, out + seen % most, out + most);  // the oldest of the kept ones to the front
  return most;
}

void SwitchWatch::enable(bool on) { ::ioctl(fd_.get(), on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0); }

// A record that is kept back counts as lost, and a record says so before the next one.
void SwitchWatch::pause(bool on) { ::ioctl(fd_.get(), PERF_EVENT_IOC_PAUSE_OUTPUT, on ? 1 : 0); }

CpuTimer::CpuTimer(Fd fd, PerfRing ring) : fd_(std::move(fd)), ring_(std::move(ring)) {}
CpuTimer::~CpuTimer() = default;

Result<std::unique_ptr<CpuTimer>> CpuTimer::open(pid_t tid) {
  perf_event_attr attr{};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_TASK_CLOCK;
  attr.sample_period = never;
  attr.wakeup_events = 1;
  auto fd = open_perf_event(attr, tid, -1);
  if (!fd) return std::move(fd).error().in("timing a thread's CPU use");
  auto ring = PerfRing::map(fd->get(), 1);  // without one the descriptor never polls readable
  if (!ring) return std::move(ring).error().in("timing a thread's CPU use");
  return std::unique_ptr<CpuTimer>(new CpuTimer(std::move(fd).value(), std::move(ring).value()));
}

Duration CpuTimer::used() const {
  std::uint64_t ns = 0;
  if (::read(fd_.get(), &ns, sizeof ns) != sizeof ns) return Duration{};
  return Duration(static_cast<std::int64_t>(ns));
}

// PERIOD takes effect at once, on a running thread too (the kernel restarts its timer), and forgets what was left of
// the old period. An expiry of the old one is in the ring by then, and made the descriptor readable, which a poll takes
// back. One of the new period that goes with it would need us to lose the CPU for a whole period here; it comes again
// after the next.
void CpuTimer::restart(std::uint64_t period) {
  ::ioctl(fd_.get(), PERF_EVENT_IOC_PERIOD, &period);
  if (!ring_.discard()) return;
  pollfd entry{fd_.get(), POLLIN, 0};
  ::poll(&entry, 1, 0);
}

void CpuTimer::arm(Duration period) {
  restart(static_cast<std::uint64_t>(std::max<Duration::rep>(period.count(), 10'000)));
}

void CpuTimer::disarm() { restart(never); }

bool CpuTimer::expired() {
  std::byte record[PerfRing::largest_record];
  while (ring_.next(record))
    if (load_as<perf_event_header>(record).type == PERF_RECORD_SAMPLE) return true;
  return false;
}

}  // namespace swapd::sys
