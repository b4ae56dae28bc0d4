#include "engine/sampler_opener.h"

#include <sys/eventfd.h>

#include <utility>

#include "sys/process/eventfd.h"
#include "sys/process/self_process.h"
#include "sys/sched/scheduler.h"

namespace swapd::daemon {

SamplerOpener::SamplerOpener(Duration period) : period_(period), changed_(::eventfd(0, EFD_CLOEXEC)) {}

SamplerOpener::~SamplerOpener() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  sys::signal_eventfd(changed_.get());
  if (thread_.joinable()) thread_.join();
}

void SamplerOpener::ask(pid_t tid) {
  {
    const std::lock_guard lock(mutex_);
    asked_.push_back(tid);
  }
  sys::signal_eventfd(changed_.get());
  if (thread_.joinable()) return;
  const auto own = sys::LinuxScheduler().get(0);
  thread_ = std::thread([this, attr = own ? *own : SchedAttr{}] { run(attr); });
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

// The next thread that was asked for; 0: none.
pid_t SamplerOpener::next() {
  const std::lock_guard lock(mutex_);
  if (stops_ || asked_.empty()) return opening_ = 0;
  opening_ = asked_.front();
  asked_.pop_front();
  return opening_;
}

void SamplerOpener::run(const SchedAttr& attr) {
  sys::name_thread("swapd-perf");
  (void)sys::LinuxScheduler().set(0, attr);  // else it is later, and right
  while (!stops_) {
    sys::clear_eventfd(changed_.get());  // waits until there is a question
    while (const pid_t tid = next()) {
      auto opened = sys::StateSampler::open(tid, period_);
      const std::lock_guard lock(mutex_);
      if (opening_ == tid) opened_.push_back({tid, opened ? std::move(*opened) : nullptr});
    }
  }
}

}  // namespace swapd::daemon
