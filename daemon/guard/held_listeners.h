// The listeners that a guard holds, and what it knows of each.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/guard_memory.h"
#include "base/time.h"

namespace swapd::daemon {

struct HeldListener {
  ListenerSlot* slot = nullptr;
  pid_t launch = 0;
  std::uint64_t highest = 0;  // the last id that the guard has answered itself
  // Since when something has waited while these did not change.
  Time waiting_since{};  // Time{}: nothing does
  std::uint64_t open_id = 0;
  std::uint64_t last_id = 0;
  bool ours = false;                      // the guard answers
  Time taken{};                           // since when
  bool delayed = false, overdue = false;  // as of the last look: swapd delays calls of it, and past their time
  bool leaving = false;                   // another swapd receives; only what was delayed is left to be answered

  // The last id that swapd or the guard is known to have received. Ids of one listener are near one another.
  [[nodiscard]] std::uint64_t last_known() const;
};

class HeldListeners {
 public:
  explicit HeldListeners(std::span<ListenerSlot> slots) : slots_(slots), fd_of_(slots.size(), -1) {}

  [[nodiscard]] bool has_slot(std::size_t slot) const { return slot < slots_.size(); }
  [[nodiscard]] bool empty() const { return held_.empty(); }
  // fd: a listener whose receiver writes to the slot, which has_slot().
  HeldListener& add(int fd, std::size_t slot, pid_t launch);
  // It stays open. False: it was not held.
  bool remove(int fd);
  // Null: it is not held.
  [[nodiscard]] HeldListener* find(int fd);
  [[nodiscard]] const HeldListener* find(int fd) const;
  // The listener of a call that swapd delays. Null: it is not held.
  [[nodiscard]] HeldListener* of(const DelayedCall& call);
  [[nodiscard]] int fd_of(const HeldListener& held) const { return fd_of_.at(slot_of(held)); }
  [[nodiscard]] std::vector<int> fds() const;
  // Calls each(fd, listener), which adds and removes none.
  template <typename Each>
  void for_each(Each each) {
    for (auto& [fd, held] : held_) each(fd, held);
  }

 private:
  [[nodiscard]] std::size_t slot_of(const HeldListener& held) const {
    return static_cast<std::size_t>(held.slot - slots_.data());
  }

  std::span<ListenerSlot> slots_;
  std::vector<int> fd_of_;  // by slot; -1: none
  std::unordered_map<int, HeldListener> held_;
};

}  // namespace swapd::daemon
