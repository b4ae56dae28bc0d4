// Attaching to processes that run already, where the observer needs a listener (docs/design.md, Safety). Control
// thread, but for the threads that wait for swapd-attach.
//
// Each order has a short-lived thread: of each process it lets swapd-attach install the filter, has the listener held
// and received while the process stands still, and then lets it go on.
#pragma once

#include <linux/filter.h>

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "engine/engine.h"
#include "enroll/launches.h"
#include "guard/helper_program.h"

namespace swapd::daemon {

class Attachments {
 public:
  struct Order {
    pid_t pid = 0;
    std::uint32_t uid = 0;  // of who asks
    bool tree = false;      // with its descendants
    bool allow_no_new_privs = false;
    std::string class_name;
    std::vector<sock_filter> filter;
    bool io = false;                   // the filter traps I/O calls
    std::function<Status(pid_t)> may;  // any thread
    bool lenient = false;              // descendants that cannot be had are no failure
  };
  // As a guard has them: what swapd-attach needs where swapd ends in the middle.
  struct Options {
    std::string program;  // swapd-attach
    std::string socket;   // where it is started by connecting; empty: it is started as a child
    Duration stale{};
    std::string state_dir;
  };

  Attachments(Engine& engine, Launches& launches, const sys::Procfs& procfs, const sys::Scheduler& scheduler,
              const Clock& clock, Options options);
  ~Attachments();
  Attachments(const Attachments&) = delete;
  Attachments& operator=(const Attachments&) = delete;

  // done: on the control thread, from reap(). EAGAIN: too many at once.
  [[nodiscard]] Status begin(Order order, std::function<void(const Status&)> done);
  void reap();  // when wake_fd() is readable
  [[nodiscard]] int wake_fd() const { return wake_.get(); }
  void stop();

 private:
  struct Task {
    Order order;
    std::function<void(const Status&)> tell;
    Status result = Done{};
    std::jthread thread;
    std::atomic<bool> done{false};
  };

  [[nodiscard]] Status enroll(const Order& order, const std::stop_token& stop);
  [[nodiscard]] Status enroll_one(const Order& order, pid_t tgid, std::uint64_t start_time,
                                  const std::stop_token& stop);
  [[nodiscard]] Status attach(const Order& order, pid_t tgid, std::uint64_t start_time, const std::stop_token& stop);
  [[nodiscard]] std::uint64_t attached_at(pid_t tgid);
  [[nodiscard]] Status receive(const Order& order, pid_t tgid, Fd listener);

  Engine& engine_;
  Launches& launches_;
  const sys::Procfs& procfs_;
  const sys::Scheduler& scheduler_;
  const Clock& clock_;
  Options options_;
  Fd wake_;
  std::mutex mutex_;
  std::list<std::unique_ptr<Task>> tasks_;
  std::unordered_map<pid_t, std::uint64_t> attached_;  // when, in ticks since boot
};

}  // namespace swapd::daemon
