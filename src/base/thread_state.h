// The state of a managed thread as `swapctl ps` says it: the words of the JSON contract.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace swapd {

enum class ThreadState : std::uint8_t {
  running,           // has a CPU
  queued,            // can run, and has none
  blocked,           // sleeps in the kernel
  virtual_runnable,  // blocked, and a thread that could end the wait can run [SWAP04 §3.2]
  delayed,           // held back by the limits of its class
  stopped,           // by a signal or a debugger
  frozen,            // by its cgroup
};

inline constexpr std::array<std::pair<ThreadState, std::string_view>, 7> thread_states = {{
    {ThreadState::running, "running"},
    {ThreadState::queued, "queued"},
    {ThreadState::virtual_runnable, "virtual-runnable"},
    {ThreadState::blocked, "blocked"},
    {ThreadState::stopped, "stopped"},
    {ThreadState::frozen, "frozen"},
    {ThreadState::delayed, "delayed"},
}};

[[nodiscard]] constexpr std::string_view word(ThreadState state) {
  for (const auto& [known, word] : thread_states)
    if (known == state) return word;
  return "blocked";
}

// Asleep in a system call, for whichever reason.
[[nodiscard]] constexpr bool sleeps(ThreadState state) {
  return state == ThreadState::blocked || state == ThreadState::virtual_runnable || state == ThreadState::delayed;
}

}  // namespace swapd
