// The memory that a launcher and swapd share while a program is launched (docs/design.md, Launch).
//
// The launcher, single-threaded: hands over its pidfd and this memory (over D-Bus), installs the filter, stores the
// listener's number in `listener`, futex-wakes it, and futex-waits on `answer` with a timeout. swapd: waits on
// `listener`, takes it with pidfd_getfd, hands a duplicate to the guard, starts receiving, stores `answer`, wakes.
// Futexes are shared (not PRIVATE).
#pragma once

#include <atomic>
#include <cstdint>

namespace swapd::sys::launch {

// `listener`, below 0.
inline constexpr std::int32_t not_yet = -1;
inline constexpr std::int32_t not_installed = -2;
// `answer`. Each side changes it once, from no_answer, by compare-and-swap: who gives up and who goes ahead agree.
inline constexpr std::int32_t no_answer = 0;
inline constexpr std::int32_t go_on = 1;
inline constexpr std::int32_t refused = 2;
inline constexpr std::int32_t gave_up = 3;  // the launcher's: its time was up

struct Shared {
  static constexpr std::uint32_t magic_value = 0x53574150;
  std::uint32_t magic = magic_value;
  std::atomic<std::int32_t> listener{not_yet};
  std::atomic<std::int32_t> answer{no_answer};
};
static_assert(std::atomic<std::int32_t>::is_always_lock_free);

}  // namespace swapd::sys::launch
