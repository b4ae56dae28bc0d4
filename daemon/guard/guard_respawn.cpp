#include "guard/guard_respawn.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "guard/guard_setup.h"

namespace swapd::daemon {
namespace {

constexpr std::chrono::seconds lives_on{10};  // what dies after that does not die at once
constexpr std::chrono::milliseconds first_pause{100};
constexpr unsigned max_doublings = 7;

}  // namespace

void GuardRespawn::swapd_ended(Time now) {
  if (command_ == nullptr) return;
  if (now - started_ >= lives_on) deaths_ = 0;
  const Duration pause = deaths_ == 0 ? Duration::zero() : first_pause * (1 << std::min(deaths_ - 1, max_doublings));
  at_ = now + pause;
}

void GuardRespawn::start_if_due(Time now) {
  if (at_ == Time{} || now < at_) return;
  at_ = {};
  if (::fork() == 0) start_swapd(command_, deaths_ + 1);
}

}  // namespace swapd::daemon
