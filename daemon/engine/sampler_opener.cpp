#include "engine/sampler_opener.h"

#include <utility>

#include "sys/process/self_process.h"
#include "sys/sched/scheduler.h"

namespace swapd::daemon {

SamplerOpener::~SamplerOpener() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  if (thread_) thread_->join();
}

void SamplerOpener::ask(pid_t tid) {
  {
    const std::lock_guard lock(mutex_);
    asked_.push_back(tid);
  }
  changed_.notify_all();
  if (thread_) return;
  const auto own = sys::LinuxScheduler().get(0);
  thread_.emplace([this, attr = own ? *own : SchedAttr{}] { run(attr); });
}

void SamplerOpener::drop(pid_t tid) {
  const std::lock_guard lock(mutex_);
  std::erase(asked_, tid);
  std::erase_if(opened_, [tid](const Opened& one) { return one.tid == tid; });
  if (opening_ == tid) opening_ = 0;
}

std::vector<SamplerOpener::Opened> SamplerOpener::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(opened_, {});
}

void SamplerOpener::run(const SchedAttr& attr) {
  sys::name_thread("swapd-perf");
  (void)sys::LinuxScheduler().set(0, attr);  // else it is later, and right
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stops_ || !asked_.empty(); });
    if (stops_) return;
    const pid_t tid = opening_ = asked_.front();
    asked_.pop_front();
    lock.unlock();
    auto opened = sys::StateSampler::open(tid, period_);
    lock.lock();
    if (std::exchange(opening_, 0) == tid) opened_.push_back({tid, opened ? std::move(*opened) : nullptr});
  }
}

}  // namespace swapd::daemon
