// The memory that a launcher and swapd share while a program is launched (DESIGN.md section 8.4).
//
// The launcher, single-threaded: hands over its pidfd and this memory (over D-Bus), installs the filter, stores the listener's
// number in `listener`, futex-wakes it, and futex-waits on `answer` with a timeout. swapd: waits on `listener`, takes it with pidfd_getfd, hands a
// duplicate to the guard, starts receiving, stores `answer`, wakes. Futexes are shared (not PRIVATE).
#pragma once

#include <atomic>
#include <cstdint>

namespace swapd::sys::launch {

struct Shared {
  static constexpr std::uint32_t magic_value = 0x53574150;
  std::uint32_t magic = magic_value;
  std::atomic<std::int32_t> listener{-1};  // -1 not yet; -2 installing failed
  std::atomic<std::int32_t> answer{0};     // 0 not yet; 1 go on; 2 refused
};
static_assert(std::atomic<std::int32_t>::is_always_lock_free);

}  // namespace swapd::sys::launch
