#include "record/record_ring.h"

#include <unistd.h>

#include <mutex>
#include <utility>

namespace swapd::daemon {

namespace {

std::size_t parts_of(const Event& event) {
  if (const auto* blocked = std::get_if<Blocked>(&event)) return 1 + blocked->awaited.size();
  if (const auto* holders = std::get_if<Holders>(&event)) return 1 + holders->threads.size();
  return 1;
}

Time time_of(const Event& event) {
  return std::visit([](const auto& e) { return e.time; }, event);
}

}  // namespace

RecordRing::RecordRing(int wake, std::size_t max_items, std::size_t max_parts)
    : wake_(wake), max_items_(max_items), max_parts_(max_parts) {}

void RecordRing::ring() const {
  const std::uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof one);
}

bool RecordRing::admit(std::size_t parts, Time now) {
  if (gap_) {
    ++lost_;
    if (now >= again_at_) ring();
    return false;
  }
  if (items_.size() >= max_items_ || parts_ + parts > max_parts_) {
    gap_ = true;
    ++lost_;
    again_at_ = now + pause;
    return false;
  }
  parts_ += parts;
  return true;
}

template <typename Make>
void RecordRing::append(std::size_t parts, Time now, Make make) {
  {
    const std::lock_guard lock(mutex_);
    if (!open_ || !admit(parts, now)) return;
    items_.push_back(make());
    if (items_.size() > 1) return;  // the control thread has been told
  }
  ring();
}

void RecordRing::event(const Event& event) {
  news_ = true;
  append(parts_of(event), time_of(event), [&] { return Item(event); });
}

void RecordRing::input(const decide::Input& input) {
  news_ = true;
  append(1, std::visit([](const auto& one) { return one.time; }, input), [&] { return Item(input); });
}

void RecordRing::turn(const decide::Turn& turn, bool idle) {
  if (!std::exchange(news_, false) && idle && !turn.tick) return;
  append(1, turn.now, [&] { return Item(turn); });
}

void RecordRing::left(ThreadId thread) {
  news_ = true;
  append(1, Time::min(), [&] { return Item(replay::Left{thread}); });
}

void RecordRing::granted(const decide::Panel& panel, Time now) {
  const auto grants = panel.grants();
  const auto away = panel.away();
  append(1 + 4 * grants.size() + panel.limits().size() + away.size(), now, [&] {
    return Item(std::make_unique<replay::Granted>(
        replay::Granted{now, {grants.begin(), grants.end()}, panel.limits(), {away.begin(), away.end()}}));
  });
}

void RecordRing::open(std::unique_ptr<Opening> opening) {
  {
    const std::lock_guard lock(mutex_);
    opening->lost = std::exchange(lost_, 0);
    open_ = true;
    gap_ = false;
    items_.push_back(std::move(opening));
  }
  news_ = true;
  on_.store(true, std::memory_order_relaxed);
  ring();
}

void RecordRing::reserve() {
  const std::lock_guard lock(mutex_);
  items_.reserve(max_items_ + 2);
  taken_.reserve(max_items_ + 2);
}

std::vector<RecordRing::Item>& RecordRing::take() {
  taken_.clear();
  const std::lock_guard lock(mutex_);
  taken_.swap(items_);
  parts_ = 0;
  return taken_;
}

void RecordRing::lose(std::uint64_t records, Time now) {
  const std::lock_guard lock(mutex_);
  lost_ += records + items_.size();
  items_.clear();
  parts_ = 0;
  gap_ = true;
  again_at_ = now + pause;
}

bool RecordRing::wants_snapshot(Time now) {
  const std::lock_guard lock(mutex_);
  return open_ && gap_ && now >= again_at_;
}

std::uint64_t RecordRing::lost() {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void RecordRing::close() {
  on_.store(false, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  open_ = false;
}

void RecordRing::release() {
  std::vector<Item>().swap(taken_);
  const std::lock_guard lock(mutex_);
  std::vector<Item>().swap(items_);
  parts_ = 0;
  lost_ = 0;
}

}  // namespace swapd::daemon
