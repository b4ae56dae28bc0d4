#include "sys/bpf/cpu_profile.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/fd.h"
#include "sys/bpf/programs/profile_layout.h"
#include "sys/bpf/skeleton.h"
//
#include "profile.skel.h"  // uses the layout

namespace swapd::sys {

namespace {

Result<Fd> open_clock(int cpu, Duration period) {
  perf_event_attr attr{};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.size = sizeof attr;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.sample_period = static_cast<std::uint64_t>(period.count());
  attr.exclude_idle = 1;
  Fd fd(static_cast<int>(::syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!fd) return errno_error("opening a CPU's clock");
  return fd;
}

// A kernel address must stay secret: the number that stands for it is another one in each swapd.
std::uint64_t disguised(std::uint64_t address, std::uint64_t secret) {
  std::uint64_t mixed = (address ^ secret) * 0x9e3779b97f4a7c15U;
  mixed ^= mixed >> 29;
  return (mixed * 0xbf58476d1ce4e5b9U) >> 11;
}

}  // namespace

struct CpuProfile::Impl {
  Skeleton<profile> programs;
  int map = -1, follow_map = -1;
  Duration period{};
  std::uint64_t secret = 0;
  std::vector<BpfLink> links;  // each closes its CPU's clock
  std::vector<int> clocks;     // of these links
  bool running = true;         // the clocks are
  struct Before {
    std::uint64_t started = 0, cpu_ns = 0, blocks = 0, round = 0;
  };
  std::unordered_map<std::uint32_t, Before> before;
  std::unordered_set<std::uint32_t> followed;
  // Findings of take(); with room for as many as there have been.
  std::vector<std::uint32_t> tids;
  std::vector<profile_thread> entries;
  std::uint32_t count = 0;
  void take();
  std::uint64_t round = 0;
};

CpuProfile::CpuProfile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CpuProfile::~CpuProfile() = default;

Result<std::unique_ptr<CpuProfile>> CpuProfile::open(Duration period) {
  auto programs = start_skeleton<profile>("the BPF program that samples the CPUs");
  if (!programs) return std::move(programs).error();
  auto impl = std::make_unique<Impl>();
  impl->programs = std::move(programs).value();
  impl->map = bpf_map__fd(impl->programs->maps.threads);
  impl->follow_map = bpf_map__fd(impl->programs->maps.followed);
  impl->period = period;
  (void)!::getrandom(&impl->secret, sizeof impl->secret, GRND_NONBLOCK);
  const long cpus = ::sysconf(_SC_NPROCESSORS_CONF);
  for (int cpu = 0; cpu < cpus; ++cpu) {
    auto clock = open_clock(cpu, period);
    if (!clock && clock.error().code() == ENODEV) continue;  // it is offline
    if (!clock) return std::move(clock).error();
    const FirstWarning warning;
    BpfLink link(bpf_program__attach_perf_event(impl->programs->progs.on_clock, clock->get()));
    if (!link) return FirstWarning::error(errno, "attaching the program that samples the CPUs");
    impl->clocks.push_back(clock->release());  // the link's by now
    impl->links.push_back(std::move(link));
  }
  return std::unique_ptr<CpuProfile>(new CpuProfile(std::move(impl)));
}

void CpuProfile::pause() {
  if (!std::exchange(impl_->running, false)) return;
  for (const int clock : impl_->clocks) (void)::ioctl(clock, PERF_EVENT_IOC_DISABLE, 0);
}

void CpuProfile::resume() {
  if (std::exchange(impl_->running, true)) return;
  // Samples from before the pause, and CPU time used in it, belong to no window.
  impl_->take();
  impl_->before.clear();
  for (const std::uint32_t one : impl_->followed) (void)bpf_map_delete_elem(impl_->follow_map, &one);
  impl_->followed.clear();
  for (const int clock : impl_->clocks) (void)::ioctl(clock, PERF_EVENT_IOC_ENABLE, 0);
}

bool CpuProfile::running() const { return impl_->running; }

void CpuProfile::follow(pid_t tid) {
  const auto key = static_cast<std::uint32_t>(tid);
  const std::uint8_t on = 1;
  if (impl_->followed.insert(key).second) (void)bpf_map_update_elem(impl_->follow_map, &key, &on, BPF_ANY);
}

// All entries, which are gone from the map then; in few system calls, because there may be thousands.
void CpuProfile::Impl::take() {
  constexpr std::uint32_t at_once = 256;
  std::uint32_t batch = 0;
  std::uint32_t taken = 0;
  for (bool first = true; taken < profile_threads; first = false) {
    if (entries.size() < taken + at_once) {
      tids.resize(taken + at_once);
      entries.resize(taken + at_once);
    }
    std::uint32_t more = at_once;
    const int failed = bpf_map_lookup_and_delete_batch(map, first ? nullptr : &batch, &batch, &tids[taken],
                                                       &entries[taken], &more, nullptr);
    if (failed == 0 || failed == -ENOENT) taken += more;
    if (failed != 0) break;  // ENOENT: that was the last
  }
  count = taken;
}

std::vector<CpuProfile::Thread> CpuProfile::read() {
  std::vector<Thread> out;
  impl_->take();
  ++impl_->round;
  for (std::uint32_t i = 0; i < impl_->count; ++i) {
    const std::uint32_t one = impl_->tids[i];
    const profile_thread& seen = impl_->entries[i];
    // One that is followed is looked at whether or not it has a CPU.
    if (impl_->followed.contains(one) && seen.samples + seen.looks > 0) {
      profile_thread cleared{};
      cleared.weight = seen.weight;
      (void)bpf_map_update_elem(impl_->map, &one, &cleared, BPF_NOEXIST);
    }
    if (seen.samples == 0) continue;
    const auto looks = static_cast<double>(std::max<std::uint64_t>(seen.looks, 1));
    Impl::Before& before = impl_->before[one];
    const bool known = before.started == seen.start_boottime && before.cpu_ns <= seen.cpu_ns;
    out.push_back({.tid = static_cast<pid_t>(one),
                   .tgid = static_cast<pid_t>(seen.tgid),
                   .samples = seen.samples,
                   .in_user = seen.in_user,
                   .spins = seen.spins,
                   .yields = seen.yields,
                   .asks = seen.asks,
                   .places = std::to_array(seen.places),
                   .rivals = seen.without_rivals == 0,
                   .looks = seen.looks,
                   .inner = static_cast<double>(seen.inner) / (looks * static_cast<double>(profile_share_one)),
                   .upper = static_cast<double>(seen.upper) / (looks * static_cast<double>(profile_share_one)),
                   .group = disguised(seen.group, impl_->secret),
                   .whole_group = seen.whole_group == 0 ? 0 : disguised(seen.whole_group, impl_->secret),
                   .weight = seen.weight,
                   .cpu = static_cast<int>(seen.cpu),
                   .cpu_time = known ? Duration(static_cast<Duration::rep>(seen.cpu_ns - before.cpu_ns))
                                     : impl_->period * static_cast<Duration::rep>(seen.samples),
                   .blocks = known ? seen.blocks - before.blocks : 0});
    before = {seen.start_boottime, seen.cpu_ns, seen.blocks, impl_->round};
  }
  std::erase_if(impl_->before, [&](const auto& one) {
    const bool gone = impl_->round - one.second.round > 16;
    if (gone && impl_->followed.erase(one.first) != 0) (void)bpf_map_delete_elem(impl_->follow_map, &one.first);
    return gone;
  });
  return out;
}

}  // namespace swapd::sys
