// A call that waits for its turn, as the delaying thread sees it.
#pragma once

#include <memory>

#include "actuate/delays.h"
#include "shaping/shared_ledger.h"

namespace swapd::daemon {

class HeldCall final : public actuate::Delayed {
 public:
  // The ledger holds the call already.
  HeldCall(const SharedLedger& ledger, std::shared_ptr<decide::PendingCall> call)
      : ledger_(ledger), call_(std::move(call)) {}
  HeldCall(const HeldCall&) = delete;
  HeldCall& operator=(const HeldCall&) = delete;
  // If there was no room to hold the call, it is forgotten with this.
  ~HeldCall() override { ledger_->forget_delay(*call_); }
  [[nodiscard]] Time due(Time now) override { return ledger_->due(*call_, now); }
  void disturbed(std::uint64_t signals) override { ledger_->disturb_delay(*call_, signals); }
  void ended(bool made, Time now) override { ledger_->end_delay(*call_, made, now); }

 private:
  const SharedLedger& ledger_;
  std::shared_ptr<decide::PendingCall> call_;
};

}  // namespace swapd::daemon
