#include "observe/bpf/wait_rate.h"

#include <utility>

namespace swapd::observe {

bool WaitRate::set_patience(Duration patience) {
  patience_ = patience;
  return patience == Duration::zero() && std::exchange(patient_, false);
}

bool WaitRate::told(Time now) {
  if (patience_ == Duration::zero() || patient_) return false;
  if (waits_ == 0 || now - begun_ > max_window) {
    begun_ = now;
    waits_ = 0;
  }
  ++waits_;
  if (waits_ <= min_waits) return false;
  if (waits_ * patience_ <= now - begun_) {
    waits_ = 0;
    return false;
  }
  patient_ = true;
  counting_ = false;
  return true;
}

bool WaitRate::counted(std::uint32_t waits, Time now) {
  if (!patient_) return false;
  if (!counting_) {
    counting_ = true;
    begun_ = now;
    waits_ = waits;
    return false;
  }
  const Duration passed = now - begun_;
  if (passed < min_window) return false;
  const std::uint32_t begun = waits - std::exchange(waits_, waits);  // goes round
  begun_ = now;
  if (2 * begun * patience_ >= passed) return false;
  patient_ = false;
  waits_ = 0;
  return true;
}

}  // namespace swapd::observe
