#include "shaping/kernel_counters.h"

#include <utility>

#include "sys/bpf/bpf_pieces.h"

namespace swapd::daemon {

template <typename Counter>
void KernelCounters::open(Opened<Counter>& opened, const char* lost, const char* instead) {
  std::call_once(opened.wanted, [&] {
    auto counter = Counter::open();
    if (!counter) {
      const std::lock_guard lock(mutex_);
      missing_.push_back({lost, sys::refusal_of(counter.error()), instead});
      return;
    }
    opened.owner = std::move(counter).value();
    opened.counter.store(opened.owner.get(), std::memory_order_release);
  });
}

void KernelCounters::want_traffic() {
  open(traffic_, "how much traffic threads move (netio)", "send and receive calls are charged what they ask for");
}

void KernelCounters::want_ends() {
  open(ends_, "what a thread moved before its end (lastio)", "its last call is charged what it asked for");
}

std::vector<MissingPiece> KernelCounters::missing() const {
  const std::lock_guard lock(mutex_);
  return missing_;
}

}  // namespace swapd::daemon
