// Display servers, and which sockets lead to one: what a client awaits there is mostly what a person does next. Pure.
#pragma once

#include <algorithm>
#include <optional>

#include "base/event.h"
#include "base/recycled.h"
#include "base/resource.h"
#include "base/thread_id.h"

namespace swapd::decide {

class Displays {
 public:
  // The thread is a display server's. What was known of sockets may be wrong now.
  void add(ThreadId server) {
    if (servers_.insert(server).second) known_.clear();
  }
  void remove(ThreadId server) { servers_.erase(server); }
  [[nodiscard]] bool empty() const { return servers_.empty(); }

  // Whether a display server is at the other end of a socket that a thread waits for; none: not known yet.
  [[nodiscard]] std::optional<bool> leads(const Resource& socket) const {
    const auto at = known_.find(socket);
    return at == known_.end() ? std::nullopt : std::optional(at->second);
  }
  // These threads can end a wait for it. True: one of them is a display server's.
  bool learn(const Holders& holders) {
    if (servers_.empty() || holders.resource.kind != ResourceKind::socket) return false;
    const bool leads = std::ranges::any_of(holders.threads, [&](ThreadId one) { return servers_.contains(one); });
    if (known_.size() >= max_known) known_.clear();
    known_[holders.resource] = leads;
    return leads;
  }

  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    archive(self.servers_, self.known_);
  }

 private:
  static constexpr std::size_t max_known = 4096;
  Set<ThreadId> servers_;
  Map<Resource, bool> known_;
};

}  // namespace swapd::decide
