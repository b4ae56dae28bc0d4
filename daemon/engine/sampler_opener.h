// Opens samplers on a thread of its own, because that may take long: for the first perf event of any thread the kernel
// waits until each CPU has gone through its scheduler (synchronize_rcu()), some 20 ms, and seconds where busy loops
// keep the kernel's RCU threads from their CPU.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/sched_attr.h"
#include "sys/perf/state_sampler.h"
#include "sys/process/pi_mutex.h"

namespace swapd::daemon {

class SamplerOpener {
 public:
  explicit SamplerOpener(Duration period);
  ~SamplerOpener();  // waits for the one that is being opened
  SamplerOpener(const SamplerOpener&) = delete;
  SamplerOpener& operator=(const SamplerOpener&) = delete;

  // Never waits. The thread begins with the first question, with the attributes of the caller.
  void ask(pid_t tid);
  // It is not wanted any more.
  void drop(pid_t tid);
  struct Opened {
    pid_t tid = 0;
    std::unique_ptr<sys::StateSampler> sampler;  // none: it cannot be sampled
  };
  // The samplers that were opened since the last call.
  [[nodiscard]] std::vector<Opened> take();

 private:
  [[nodiscard]] pid_t next();
  void run(const SchedAttr& attr);

  const Duration period_;
  Fd changed_;  // an eventfd, which blocks
  sys::PiMutex mutex_;
  std::deque<pid_t> asked_;
  pid_t opening_ = 0;  // 0: none, or it is not wanted any more
  std::vector<Opened> opened_;
  std::atomic<bool> stops_ = false;
  std::thread thread_;
};

}  // namespace swapd::daemon
