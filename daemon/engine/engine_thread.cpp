#include "engine/engine_thread.h"

#include <sched.h>

#include <algorithm>
#include <future>
#include <memory>
#include <utility>

#include "sys/process/self_process.h"

namespace swapd::daemon {

namespace {
constexpr std::size_t heap = 8 << 20;  // a thousand managed threads take less
}  // namespace

Status EngineThread::listen() {
  auto added = loop_.add(commands_.fd(), [this](const sys::EventLoop::Ready&) { commands_.clear(); });
  if (!added) return std::move(added).error().in("setting up the engine");
  hears_commands_ = std::move(added).value();
  return Done{};
}

Status EngineThread::start(std::function<void()> body) {
  std::promise<Status> realtime;
  auto started = realtime.get_future();
  thread_ = std::thread([this, &realtime, body = std::move(body)] {
    sys::name_thread("swapd-engine");
    sys::reserve_heap(heap);
    SchedAttr attr;
    attr.policy = SchedPolicy::fifo;
    attr.rt_priority = static_cast<std::uint8_t>(options_.priority);
    if (const auto cpus = kernel_.scheduler.affinity(0)) affinity_.emplace(*cpus);
    realtime.set_value(kernel_.scheduler.set(0, attr));
    body();
  });
  return started.get();
}

bool EngineThread::stop() {
  if (!thread_.joinable()) return false;
  call([this] { stopping_ = true; });
  thread_.join();
  return true;
}

bool EngineThread::call(std::function<void()> command) {
  auto done = std::make_shared<std::promise<void>>();
  auto finished = done->get_future();
  const bool taken = commands_.push([command = std::move(command), done] {
    command();
    done->set_value();
  });
  if (taken) finished.wait();
  return taken;
}

Time EngineThread::wait(Time deadline, bool any_members, bool idle) {
  const Time before = kernel_.clock.now();
  const Time wake_at = std::min(deadline, pacer_.next_tick(any_members, idle));
  loop_.wait(wake_at == Time::max() ? std::nullopt : std::optional<Duration>(wake_at - before));
  const Time now = kernel_.clock.now();
  loop_.dispatch(now);
  return now;
}

void EngineThread::end_tick(Time now) { pacer_.measure(sys::own_cpu_time(), now); }

std::optional<Duration> EngineThread::keep_to_budget(Time now, const OwnCpu::Help& help, Duration apart) {
  return own_cpu_.measure(now, help, apart);
}

void EngineThread::keep_off(std::span<const int> busy, Time now) {
  cpu_set_t cpus;
  if (affinity_ && affinity_->move(::sched_getcpu(), busy, now, cpus)) (void)kernel_.scheduler.set_affinity(0, cpus);
}

}  // namespace swapd::daemon
