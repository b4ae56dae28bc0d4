// Decides which resources the worker is asked about, and when (docs/design.md, Donation). Who could provide them is
// found by scans, which cost far more than anything else that swapd does. Pure.
//
// Locks change hands without a call that is seen: who holds one is asked at each wait, and again while it lasts. What
// has a known provider is not asked about at the begin of a wait; while it lasts, the less often the longer it has
// lasted.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "decide/decider.h"
#include "decide/donation/attention.h"
#include "model/model.h"

namespace swapd::decide {

class Inquiry {
 public:
  explicit Inquiry(Duration rescan) : rescan_(rescan) {}

  enum class Why : std::uint8_t {
    begins,   // the wait has just begun, or something has changed for it
    lasts,    // it goes on, and its turn has come
    overdue,  // … long ago, and the worker has other work all the time
  };
  // About the resources in the requester's wait tree for which it is time.
  void ask(const model::Model& model, ThreadId requester, Time now, Why why, Attention& attention, Plan& plan);
  // The same for many requesters whose waits begin: a thread in the trees of all of them is considered once.
  void ask_at_begin(const model::Model& model, std::span<const ThreadId> requesters, Time now, Plan& plan);
  // The requester's provider itself waits for no known thread by now, and the wait goes on: what is awaited may have
  // been passed on (a server that has accepted a connection and left it to a child). A few times in a rescan period at
  // most.
  void ask_for_another(const model::Model& model, ThreadId requester, Time now, Attention& attention, Plan& plan);
  // A provider has gone: the resources that its waiters await are asked about at once.
  void provider_left(const model::Model& model, ThreadId provider);

  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    archive(self.scanned_, self.max_scanned_);
  }

 private:
  void ask_together(const model::Model& model, std::span<const ThreadId> requesters, Time now, Plan& plan);
  // own: the waiter is the requester itself. unprovided: nothing but these and locks.
  void put(const model::ThreadView& waiter, bool own, const Vector<Resource>* unprovided, Time now, Plan& plan);
  [[nodiscard]] Duration pause(const model::ThreadView& waiter, Time now) const;
  [[nodiscard]] bool due(const Resource& resource, const model::ThreadView& waiter, Time now, Duration fresh) const;
  void sweep(Time now);

  Duration rescan_;
  HashMap<Resource, Time> scanned_;
  std::size_t max_scanned_ = 0;  // swept past this
};

}  // namespace swapd::decide
