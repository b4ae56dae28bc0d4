#include "decide/memory/thrashing.h"

#include <algorithm>
#include <bit>

namespace swapd::decide {

void Thrashing::window(const MemoryWindow& window) {
  if (window.length <= Duration::zero()) return;
  const auto in = static_cast<double>(window.in), out = static_cast<double>(window.out);
  const double back = std::min(static_cast<double>(window.refaults), in);
  lost_ = back * std::chrono::duration<double>(window.page_cost).count() /
          std::chrono::duration<double>(window.length).count();
  const bool thrashes = lost_ >= config_.lost && back >= config_.refaults * in && out >= config_.both * in;
  constexpr std::uint32_t four = 0xf;
  last_ = (last_ << 1 | (thrashes ? 1U : 0U)) & four;
  there_ = std::popcount(last_) >= config_.begins_after;
  calm_windows_ = !thrashes && lost_ < config_.lost / 3 ? calm_windows_ + 1 : 0;
}

void Thrashing::begin_anew() {
  last_ = 0;
  calm_windows_ = 0;
  there_ = false;
}

}  // namespace swapd::decide
