// For measurements of what wrong evidence costs (swapd --inject-wrong-provider): every sighting and every scan names
// the managed processes of one name as the providers, and the model never learns which thread ended a wait. Only
// BoostMeter, which has to limit the harm, sees the events as they are.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/event.h"
#include "model/managed_set.h"
#include "sys/procfs/procfs.h"

namespace swapd::daemon {

class WrongEvidence {
 public:
  // comm: the name of the main threads that are named.
  WrongEvidence(const model::ManagedSet& members, std::string comm) : members_(members), comm_(std::move(comm)) {}

  // The event to use in place of this one; none: this one.
  [[nodiscard]] std::optional<Event> instead_of(const Event& event);

 private:
  [[nodiscard]] std::vector<ThreadId> wrong_threads();

  const model::ManagedSet& members_;
  const std::string comm_;
  const sys::Procfs procfs_;
  std::size_t processes_ = 0;  // when `known_` was made
  std::vector<ThreadId> known_;
};

}  // namespace swapd::daemon
