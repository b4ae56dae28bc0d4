// Notes of the engine for the control thread. Bounded: a control thread that is kept from running makes the
// engine's memory no larger, and never makes it wait.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/snapshot.h"
#include "sys/process/eventfd.h"
#include "sys/process/pi_mutex.h"

namespace swapd::daemon {

class NoteQueue {
 public:
  static constexpr std::size_t most = 8192;

  // wake: an eventfd; signalled when a note comes into the empty queue.
  explicit NoteQueue(int wake) : wake_(wake) {}

  // False: there is no room, and the note is lost. [engine]
  [[nodiscard]] bool push(const Note& note) {
    {
      const std::lock_guard lock(mutex_);
      if (notes_.size() >= most) return false;
      notes_.push_back(note);
      if (notes_.size() > 1) return true;  // the control thread has been told
    }
    sys::signal_eventfd(wake_);
    return true;
  }
  // [control]
  [[nodiscard]] std::vector<Note> take() {
    std::vector<Note> taken;
    const std::lock_guard lock(mutex_);
    taken.swap(notes_);
    return taken;
  }

 private:
  int wake_;
  sys::PiMutex mutex_;  // held for a few moves only
  std::vector<Note> notes_;
};

}  // namespace swapd::daemon
