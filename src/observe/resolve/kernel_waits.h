// Waits inside the kernel that other threads end: for the lock of a file or of a process's memory, and for the answer
// of a FUSE daemon. No call says so; where the thread sleeps in the kernel does (Procfs::kernel_stack()).
//
// Most waits in such calls are for a device and short. So nothing is looked at until one has lasted for milliseconds;
// what such a wait was for is remembered, and the next wait there is known at once, until many in a row were short.
// All but the class KernelWaits are functions of text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/resource.h"

namespace swapd::observe {

enum class Stall : std::uint8_t {
  none,    // it is not known, or no other thread ends it
  device,  // a disk, a journal, throttled writing
  lock,    // one of the kernel's own
  fuse,    // a FUSE daemon
};
// The place where a thread in uninterruptible sleep (or in `fuse`'s, which is not) stands. The kernel leaves the
// functions of its locks out of a stack: a sleep in a function that is neither of a device nor of a queue is one for a
// lock.
[[nodiscard]] Stall stall_in(std::string_view stack, bool uninterruptible);
// Whether a thread that wants a CPU was preempted inside a call (or a page fault's work), where it may hold a lock.
[[nodiscard]] bool preempted_in_call(std::string_view stack);

// The FUSE mount that a path lies in, as st_dev. path: absolute; links in it are not followed.
[[nodiscard]] std::optional<std::uint64_t> fuse_mount_of(std::string_view mountinfo, std::string_view path);
// The only FUSE mount there is.
[[nodiscard]] std::optional<std::uint64_t> only_fuse_mount(std::string_view mountinfo);
// st_dev as the kernel counts it: what fdinfo of /dev/fuse calls fuse_connection.
[[nodiscard]] std::uint64_t fuse_connection_of(std::uint64_t dev);
// "a" below "/x/y" → "/x/y/a"; "." and ".." are worked out in the text.
[[nodiscard]] std::string joined(std::string_view directory, std::string_view path);

// The positions of arguments that are a path, the directory that it begins at (-1: the working directory), and a
// descriptor. -1: there is none.
struct FileArgs {
  int path = -1;
  int directory = -1;
  int fd = -1;
};
[[nodiscard]] FileArgs file_args(std::int32_t nr);
// Calls that change the process's memory map, and so wait for its lock.
[[nodiscard]] bool changes_memory(std::int32_t nr);

class KernelWaits {
 public:
  static constexpr int forgotten_after = 32;  // short waits in a row
  static constexpr std::size_t max_known = 256;

  void was_long(const Resource& resource);
  void was_short(const Resource& resource);
  [[nodiscard]] bool knows(const Resource& resource) const { return known_.contains(resource); }
  [[nodiscard]] bool empty() const { return known_.empty(); }
  [[nodiscard]] bool knows_fuse() const { return fuse_ != 0; }

 private:
  void forget(std::unordered_map<Resource, int>::iterator at);

  std::unordered_map<Resource, int> known_;  // short waits since the last long one
  std::size_t fuse_ = 0;                     // of them
};

}  // namespace swapd::observe
