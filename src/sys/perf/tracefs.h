// The kernel's trace file system, as far as perf needs it: the number of a tracepoint and the places of its fields
// (tracefs, Documentation/trace/events.rst).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace swapd::sys {

struct TraceField {
  std::string name;
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};
struct TraceFormat {
  std::uint64_t id = 0;
  std::vector<TraceField> fields;
  [[nodiscard]] Result<TraceField> field(std::string_view name) const;
};

// Pure: the text of an event's `format` file.
[[nodiscard]] Result<TraceFormat> parse_trace_format(std::string_view text);

// A directory descriptor of a tracefs: one of our own that stands in no directory (fsopen(2), fsmount(2); no other
// process sees it, and it goes with the descriptor), or the machine's if we may not mount.
[[nodiscard]] Result<Fd> open_tracefs();
// For example "sched/sched_waking".
[[nodiscard]] Result<TraceFormat> read_trace_format(int tracefs, std::string_view event);

}  // namespace swapd::sys
