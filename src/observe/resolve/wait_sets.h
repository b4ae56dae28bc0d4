// The members of poll, select and epoll waits, read from the waiter's memory and from fdinfo.
//
// Both are the target's to write: sizes, depths and loops are bounded here.
#pragma once

#include <vector>

#include "observe/resolve/descriptor.h"
#include "observe/resolve/syscall_table.h"
#include "sys/procfs/procfs.h"

namespace swapd::observe {

// A descriptor waited on, in one direction.
struct WaitMember {
  Descriptor descriptor;
  Direction direction = Direction::in;
  int fd = -1;  // the number it was added as; a pipe or a socket need not be open under it any more
};

inline constexpr std::size_t max_members = 1024;
inline constexpr int max_nesting = 5;  // EP_MAX_NESTS of the kernel

// poll(2), ppoll(2): args are the array and its length.
[[nodiscard]] std::vector<WaitMember> poll_members(const sys::Procfs& procfs, const Descriptors& descriptors, pid_t tid,
                                                   std::uint64_t array, std::uint64_t count);
// select(2), pselect6(2): count, read set, write set.
[[nodiscard]] std::vector<WaitMember> select_members(const sys::Procfs& procfs, const Descriptors& descriptors,
                                                     pid_t tid, std::uint64_t count, std::uint64_t read_set,
                                                     std::uint64_t write_set);
// epoll_wait(2) and its relatives, and an epoll set as a member of another. Nested sets are opened.
[[nodiscard]] std::vector<WaitMember> epoll_members(const sys::Procfs& procfs, const Descriptors& descriptors,
                                                    pid_t tid, int set);

}  // namespace swapd::observe
