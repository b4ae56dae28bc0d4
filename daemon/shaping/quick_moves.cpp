#include "shaping/quick_moves.h"

#include <chrono>
#include <utility>

#include "sys/process/self_process.h"
#include "sys/sched/freezer_group.h"

namespace swapd::daemon {
namespace {

constexpr Duration move_every = std::chrono::milliseconds(5);

}  // namespace

QuickMoves::QuickMoves(std::string proc_root, std::string cgroups)
    : proc_root_(std::move(proc_root)),
      cgroups_(std::move(cgroups)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

QuickMoves::~QuickMoves() = default;

bool QuickMoves::is_over() const { return SteadyClock().now() >= until_.load(); }

void QuickMoves::keep_for(Duration duration) {
  const bool slept = is_over();
  until_ = SteadyClock().now() + duration;
  if (!slept) return;
  { const std::lock_guard lock(mutex_); }  // the thread does not look at the time at this moment
  changed_.notify_one();
}

void QuickMoves::run(const std::stop_token& stop) const {
  sys::name_thread("swapd-moves");
  (void)sys::set_thread_nice(0, -20);
  while (!stop.stop_requested()) {
    std::unique_lock lock(mutex_);
    (void)changed_.wait(lock, stop, [this] { return !is_over(); });
    lock.unlock();
    if (stop.stop_requested() || !sys::FreezerGroup::stay(proc_root_, cgroups_)) return;
    std::this_thread::sleep_for(move_every);
  }
}

}  // namespace swapd::daemon
