#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <mutex>
#include <string>
#include <utility>

#include "sys/perf/perf.h"
#include "sys/perf/perf_ring.h"
#include "sys/perf/tracefs.h"

namespace swapd::sys {
namespace {

// The bits of common_flags, from trace_events.h, which is not exported.
constexpr std::uint8_t flag_hard_interrupt = 0x08;
constexpr std::uint8_t flag_soft_interrupt = 0x10;
// Fates of a signal, the values of the field `result` (signal.h of the trace events): delivered, and delivered
// without its siginfo.
constexpr std::int32_t signal_delivered = 0;
constexpr std::int32_t signal_without_info = 4;
// prev_state is 0 for a thread that yields and 0x100 (TASK_REPORT_MAX of sched.h, since 4.14) for one that is
// preempted.
constexpr const char* sleeping = "prev_state != 0 && prev_state != 256";
constexpr std::size_t pages_per_cpu = 16;
constexpr std::size_t pages_per_thread = 2;

// Places of the fields in the raw record.
struct Layout {
  std::uint64_t id = 0;
  std::uint32_t flags = 0;
  std::uint32_t target = 0;
  std::optional<std::uint32_t> signal, group, result;
  std::uint32_t end = 0;  // the record holds at least this much
};

Result<Layout> read_layout(TraceWatch::Point point) {
  const bool is_signal = point == TraceWatch::Point::signal_generate;
  const bool is_block = point == TraceWatch::Point::sched_block;
  auto tracefs = open_tracefs();
  if (!tracefs) return std::move(tracefs).error();
  const auto format = read_trace_format(tracefs->get(), is_signal  ? "signal/signal_generate"
                                                        : is_block ? "sched/sched_switch"
                                                                   : "sched/sched_waking");
  if (!format) return format.error();
  Layout layout{.id = format->id};
  const auto place = [&](const char* name, std::uint32_t size) -> Result<std::uint32_t> {
    auto field = format->field(name);
    if (!field) return std::move(field).error();
    if (field->size != size) return Error(EBADMSG, std::string("the size of tracepoint field ") + name);
    layout.end = std::max(layout.end, field->offset + size);
    return field->offset;
  };
  const auto flags = place("common_flags", 1);
  const auto target = place(is_block ? "prev_pid" : "pid", 4);
  if (!flags) return flags.error();
  if (!target) return target.error();
  layout.flags = *flags;
  layout.target = *target;
  if (!is_signal) return layout;
  const auto signal = place("sig", 4);
  const auto group = place("group", 4);
  const auto result = place("result", 4);
  if (!signal) return signal.error();
  if (!group) return group.error();
  if (!result) return result.error();
  layout.signal = *signal;
  layout.group = *group;
  layout.result = *result;
  return layout;
}

// Read once in the life of the process: the engine opens watches while it works, and a mount is not for it.
Result<Layout> layout_of(TraceWatch::Point point) {
  static std::mutex mutex;
  static std::array<std::optional<Layout>, 3> known;
  const std::lock_guard lock(mutex);
  auto& entry = known.at(static_cast<std::size_t>(point));
  if (entry) return *entry;
  auto layout = read_layout(point);
  if (layout) entry = *layout;
  return layout;
}

std::vector<int> online_cpus() {
  std::ifstream file("/sys/devices/system/cpu/online");  // "0-3,8,10-11"
  std::vector<int> cpus;
  for (int first = 0, last = 0; file >> first; file.get()) {
    last = first;
    if (file.peek() == '-' && file.get() && !(file >> last)) break;
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (file.peek() != ',') break;
  }
  if (cpus.empty())
    for (int cpu = 0; cpu < ::sysconf(_SC_NPROCESSORS_ONLN); ++cpu) cpus.push_back(cpu);
  return cpus;
}

}  // namespace

struct TraceWatch::Impl {
  // On a CPU or a thread.
  struct Part {
    Fd event;
    PerfRing ring;
  };
  Layout layout;
  pid_t tid = -1;
  bool at_once = false;
  const char* own_filter = nullptr;  // set when the event is opened
  std::vector<Part> parts;           // one a CPU, or one for the thread

  [[nodiscard]] Result<Fd> open_event(int cpu, bool enabled) const;
  [[nodiscard]] Status open_part(int cpu);
  [[nodiscard]] bool decode(const std::byte* record, TraceRecord& out) const;
};

Result<Fd> TraceWatch::Impl::open_event(int cpu, bool enabled) const {
  const std::size_t pages = cpu >= 0 ? pages_per_cpu : pages_per_thread;
  perf_event_attr attr{};
  attr.type = PERF_TYPE_TRACEPOINT;
  attr.config = layout.id;
  attr.disabled = enabled ? 0 : 1;
  attr.sample_period = 1;
  attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;
  attr.watermark = 1;
  const auto half = static_cast<std::uint32_t>(pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) / 2);
  attr.wakeup_watermark = at_once ? 1 : half;
  return open_perf_event(attr, tid, cpu);
}

Status TraceWatch::Impl::open_part(int cpu) {
  auto fd = open_event(cpu, own_filter == nullptr);
  if (!fd) return std::move(fd).error();
  if (own_filter != nullptr && (::ioctl(fd->get(), PERF_EVENT_IOC_SET_FILTER, own_filter) != 0 ||
                                ::ioctl(fd->get(), PERF_EVENT_IOC_ENABLE, 0) != 0))
    return errno_error("filtering a tracepoint");
  auto ring = PerfRing::map(fd->get(), cpu >= 0 ? pages_per_cpu : pages_per_thread);
  if (!ring) return std::move(ring).error();
  parts.push_back({std::move(fd).value(), std::move(ring).value()});
  return Done{};
}

// A sample is, in this order (perf_event_open(2)): header, u32 pid and tid, u64 time, u32 size, the raw bytes.
bool TraceWatch::Impl::decode(const std::byte* record, TraceRecord& out) const {
  const auto header = load_as<perf_event_header>(record);
  constexpr std::size_t raw_at = sizeof header + 8 + 8 + 4;
  if (header.type != PERF_RECORD_SAMPLE || header.size < raw_at) return false;
  const auto raw_size = load_as<std::uint32_t>(record + raw_at - 4);
  if (raw_size < layout.end || raw_at + raw_size > header.size) return false;
  const std::byte* raw = record + raw_at;
  if (layout.result) {
    const auto result = load_as<std::int32_t>(raw + *layout.result);
    if (result != signal_delivered && result != signal_without_info) return false;
  }
  out = TraceRecord{};
  out.by = load_as<pid_t>(record + sizeof header + 4);
  out.time = Time(Duration(load_as<std::int64_t>(record + sizeof header + 8)));
  out.target = load_as<pid_t>(raw + layout.target);
  if (layout.signal) out.detail = load_as<std::int32_t>(raw + *layout.signal);
  if (layout.group) out.group = load_as<std::int32_t>(raw + *layout.group) != 0;
  const auto flags = load_as<std::uint8_t>(raw + layout.flags);
  out.hard_interrupt = (flags & flag_hard_interrupt) != 0;
  out.soft_interrupt = (flags & flag_soft_interrupt) != 0;
  return true;
}

TraceWatch::TraceWatch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TraceWatch::~TraceWatch() = default;

Result<std::unique_ptr<TraceWatch>> TraceWatch::open(Point point, pid_t tid, bool at_once) {
  auto layout = layout_of(point);
  if (!layout) return std::move(layout).error().in("watching a tracepoint");
  auto impl = std::make_unique<Impl>();
  impl->layout = *layout;
  impl->tid = tid;
  impl->at_once = at_once;
  if (point == Point::sched_block) impl->own_filter = sleeping;
  const std::vector<int> cpus = tid >= 0 ? std::vector<int>{-1} : online_cpus();
  for (const int cpu : cpus)
    if (Status opened = impl->open_part(cpu); !opened)
      return std::move(opened).error().in(cpu < 0 ? "watching a thread's tracepoint"
                                                  : "watching a tracepoint on CPU " + std::to_string(cpu));
  return std::unique_ptr<TraceWatch>(new TraceWatch(std::move(impl)));
}

void TraceWatch::enable(bool on) {
  for (const auto& part : impl_->parts)
    ::ioctl(part.event.get(), on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

std::vector<int> TraceWatch::fds() const {
  std::vector<int> fds;
  for (const auto& part : impl_->parts) fds.push_back(part.event.get());
  return fds;
}

std::size_t TraceWatch::read(TraceRecord* out, std::size_t most) {
  std::byte record[PerfRing::largest_record];
  std::size_t count = 0;
  for (auto& part : impl_->parts)
    while (count < most && part.ring.next(record))
      if (impl_->decode(record, out[count])) ++count;
  if (impl_->parts.size() > 1)
    std::sort(out, out + count, [](const auto& a, const auto& b) { return a.time < b.time; });
  return count;
}

}  // namespace swapd::sys
