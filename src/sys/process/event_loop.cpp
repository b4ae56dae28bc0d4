#include "sys/process/event_loop.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <span>

namespace swapd::sys {

EventLoop::EventLoop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

Result<EventLoop::Registration> EventLoop::add(int fd, Callback callback, Urgency urgency) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
    free_.reserve(slots_.size());  // so that remove() does not allocate
    retired_.reserve(slots_.size());
  }
  const std::uint32_t index = free_.back();
  Slot& slot = slots_[index];
  epoll_event event{.events = EPOLLIN, .data = {.u64 = key(index, slot.generation)}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return errno_error("adding descriptor " + std::to_string(fd) + " to an event loop");
  free_.pop_back();
  slot.fd = fd;
  slot.urgency = urgency;
  slot.callback = std::move(callback);
  return Registration(*this, index);
}

void EventLoop::remove(std::uint32_t index) {
  Slot& slot = slots_[index];
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, slot.fd, nullptr);
  slot.fd = -1;
  ++slot.generation;
  retired_.push_back(index);
  if (!dispatching_) retire();
}

void EventLoop::retire() {
  for (const std::uint32_t index : retired_) {
    slots_[index].callback = nullptr;
    free_.push_back(index);
  }
  retired_.clear();
}

std::size_t EventLoop::wait(std::optional<Duration> timeout) {
  timespec left{};
  if (timeout && *timeout > Duration::zero()) {
    left.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(*timeout).count();
    left.tv_nsec = (*timeout % std::chrono::seconds(1)).count();
  }
  const int n =
      ::epoll_pwait2(epoll_.get(), ready_.data(), static_cast<int>(ready_.size()), timeout ? &left : nullptr, nullptr);
  found_ = n > 0 ? static_cast<std::size_t>(n) : 0;
  can_wait_ = found_ > 0 && std::ranges::all_of(std::span(ready_).first(found_), [this](const epoll_event& e) {
                return slots_[static_cast<std::uint32_t>(e.data.u64)].urgency == Urgency::can_wait;
              });
  return found_;
}

void EventLoop::dispatch(Time now) {
  dispatching_ = true;
  for (const epoll_event& event : std::span(ready_).first(found_)) {
    const Slot& slot = slots_[static_cast<std::uint32_t>(event.data.u64)];
    if (slot.fd < 0 || slot.generation != static_cast<std::uint32_t>(event.data.u64 >> 32)) continue;
    slot.callback({.now = now, .hung_up = (event.events & EPOLLHUP) != 0});
  }
  found_ = 0;
  dispatching_ = false;
  retire();
}

}  // namespace swapd::sys
