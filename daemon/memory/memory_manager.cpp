#include "memory/memory_manager.h"

namespace swapd::daemon {

MemoryManager::MemoryManager(const Kernel& kernel, const Config& config, const std::function<void()>& notify)
    : on_(config.on), watch_(kernel, {.needed = config.needed}, notify), away_(kernel, config.away, notify) {}

void MemoryManager::start() {
  if (!on_) return;
  watch_.start();
  away_.start();
}

void MemoryManager::stop() {
  watch_.stop();
  away_.stop();
}

void MemoryManager::set_processes(std::vector<pid_t> pids) {
  pids_ = std::move(pids);
  if (on_) watch_.set(pids_, some_away_);
}

// While some are away, memory must be known all the time.
void MemoryManager::put_away(std::span<const pid_t> tgids) {
  away_.set({tgids.begin(), tgids.end()});
  some_away_ = !tgids.empty();
  watch_.set(pids_, some_away_);
}

std::vector<decide::Input> MemoryManager::take() {
  if (!on_) return {};  // each turn of the engine comes here
  std::vector<decide::Input> out = watch_.take();
  for (const decide::MemoryEvent& event : away_.take()) out.emplace_back(event);
  return out;
}

}  // namespace swapd::daemon
