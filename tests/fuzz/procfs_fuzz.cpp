// Every parser of procfs text, on the same input: none may crash, read past the end, or make more of the text than it
// holds.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sys/procfs/io_counters.h"
#include "sys/procfs/procfs_parse.h"
#include "sys/sched/freezer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace parse = swapd::sys::parse;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto stat = parse::stat(text);
  if (stat && stat->comm.back() != 0) std::abort();
  const auto call = parse::syscall(text);
  if (call && call->running && call->in_call) std::abort();
  const auto info = parse::fdinfo(text);
  if (info.epoll.size() + info.locks.size() > size) std::abort();
  if (parse::locks(text).size() > size || parse::pids(text).size() > size) std::abort();
  static_cast<void>(parse::epoll_target(text));
  static_cast<void>(parse::mapping(text));
  static_cast<void>(parse::autogroup(text));
  static_cast<void>(parse::capabilities(text));
  static_cast<void>(parse::interruption(text));
  static_cast<void>(parse::freezer_groups(text));
  static_cast<void>(parse::io_counters(text));
  if (parse::unit_cgroup(text).size() > size) std::abort();
  static_cast<void>(parse::status_numbers(text, "NSpid"));
  return 0;
}
