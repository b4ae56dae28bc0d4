#include "harness/kernel_events.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "sys/perf/tracefs.h"

namespace swapd::bench {

namespace {

constexpr std::size_t ring_pages = 64;

std::int64_t integer(const std::byte* at, std::uint32_t size) {
  return size == 8 ? sys::load_as<std::int64_t>(at) : sys::load_as<std::int32_t>(at);
}

}  // namespace

Result<KernelEvents> KernelEvents::open(const std::string& event, const std::string& field, const std::string& filter,
                                        pid_t tid) {
  const auto tracefs = sys::open_tracefs();
  if (!tracefs) return tracefs.error();
  const auto format = sys::read_trace_format(tracefs->get(), event);
  if (!format) return format.error();
  const auto place = format->field(field);
  if (!place) return place.error();
  if (place->size != 4 && place->size != 8) return Error(EBADMSG, event + ": " + field + " is no integer");
  KernelEvents events;
  events.offset_ = place->offset;
  events.size_ = place->size;
  perf_event_attr attr{};
  attr.type = PERF_TYPE_TRACEPOINT;
  attr.config = format->id;
  attr.disabled = 1;
  attr.sample_period = 1;
  attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;
  attr.watermark = 1;
  attr.wakeup_watermark = 1U << 30;  // nobody is woken: to read later disturbs nothing now
  const int cpus = tid >= 0 ? 1 : static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  for (int cpu = 0; cpu < cpus; ++cpu) {
    auto fd = sys::open_perf_event(attr, tid, tid >= 0 ? -1 : cpu);
    if (!fd) return Error(fd.error()).in(event);
    if (!filter.empty() && ::ioctl(fd->get(), PERF_EVENT_IOC_SET_FILTER, filter.c_str()) != 0)
      return errno_error("filtering " + event);
    auto ring = sys::PerfRing::map(fd->get(), ring_pages);
    if (!ring) return ring.error();
    if (::ioctl(fd->get(), PERF_EVENT_IOC_ENABLE, 0) != 0) return errno_error(event);
    events.parts_.push_back({std::move(*fd), std::move(*ring)});
  }
  return events;
}

// A sample is, in this order: header, u32 pid and tid, u64 time, u32 size, the raw bytes. A PERF_RECORD_LOST: header,
// u64 id, u64 how many.
void KernelEvents::read(std::vector<KernelEvent>& out) {
  std::byte record[sys::PerfRing::largest_record];
  for (Part& part : parts_) {
    while (part.ring.next(record)) {
      const auto header = sys::load_as<perf_event_header>(record);
      constexpr std::size_t raw_at = sizeof header + 8 + 8 + 4;
      if (header.type == PERF_RECORD_LOST) lost_ += sys::load_as<std::uint64_t>(record + sizeof header + 8);
      if (header.type != PERF_RECORD_SAMPLE || raw_at + offset_ + size_ > header.size) continue;
      out.push_back({.time = Time(Duration(sys::load_as<std::int64_t>(record + sizeof header + 8))),
                     .tid = sys::load_as<pid_t>(record + sizeof header + 4),
                     .value = integer(record + raw_at + offset_, size_)});
    }
  }
}

}  // namespace swapd::bench
