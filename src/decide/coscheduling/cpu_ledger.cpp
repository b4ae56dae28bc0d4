#include "decide/coscheduling/cpu_ledger.h"

namespace swapd::decide {

namespace {
Duration scaled(Duration time, double by) {
  return Duration(static_cast<Duration::rep>(static_cast<double>(time.count()) * by));
}
}  // namespace

// A thread that could run at the last settlement is taken to have been able to ever since. One that was blocked then
// waits for a mate that has no CPU, as far as the ledger knows, if a mate could run: it earns, too. Else it is due what
// it has used.
void CpuLedger::settle(ThreadId thread, Duration cpu, bool runnable, Time now) {
  Account& account = threads_[thread];
  if (account.known) {
    const Duration used = std::max(cpu - account.cpu, Duration::zero());
    const Duration could_run = account.earns ? std::max(now - account.settled, Duration::zero()) : used;
    const Duration entitled = scaled(could_run, account.share);
    used_ += used;
    entitled_ += entitled;
    credit_ = std::clamp(credit_ + entitled - used, -bound_, bound_);
  }
  account.known = true;
  account.runnable = runnable;
  account.cpu = cpu;
  account.settled = now;
  const bool any = this->runnable() > 0;
  for (auto& [other, one] : threads_) one.earns = one.known && any;
}

void CpuLedger::set_bound(Duration bound) {
  bound_ = bound;
  credit_ = std::clamp(credit_, -bound_, bound_);
}

double CpuLedger::due() const {
  double due = 0;
  for (const auto& [thread, account] : threads_) due += account.earns ? account.share : 0;
  return due;
}

int CpuLedger::runnable() const {
  return static_cast<int>(std::ranges::count_if(threads_, [](const auto& one) { return one.second.runnable; }));
}

std::optional<Duration> CpuLedger::until(Duration wanted) const {
  if (credit_ >= wanted) return Duration::zero();
  const double rate = due();
  if (rate <= 0) return std::nullopt;
  return scaled(wanted - credit_, 1 / rate);
}

}  // namespace swapd::decide
