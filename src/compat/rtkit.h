// rtkit's interface (org.freedesktop.RealtimeKit1), on the system bus, for programs of sound and video: a thread has
// the real-time priority or the nice value that its program asks for, if realtime_rules.h and polkit
// (org.freedesktop.RealtimeKit1.acquire-real-time, .acquire-high-priority) allow it. Its process is managed by swapd
// from then on, so that whatever the thread waits for is lent its priority.
//
// Needs CAP_SYS_NICE.
#pragma once

#include <list>
#include <map>
#include <set>
#include <string>

#include "base/thread_id.h"
#include "compat/bus.h"
#include "compat/realtime_rules.h"
#include "compat/swapd_client.h"
#include "sys/procfs/procfs.h"
#include "sys/sched/scheduler.h"

namespace swapd::compat {

class RealtimeKit {
 public:
  // loop, bus, swapd: outlive it. class_name: that processes come into; empty: default.
  RealtimeKit(sd_event* loop, sd_bus* bus, SwapdClient& swapd, std::string class_name)
      : loop_(loop), bus_(bus), swapd_(swapd), class_name_(std::move(class_name)) {}
  // Takes the name, and serves from the event loop on. EEXIST: another program has the name.
  [[nodiscard]] Status serve();

 private:
  // A call that waits for polkit's answer.
  struct Question {
    RealtimeKit* self = nullptr;
    Message call;
    RealtimeWish wish;
    pid_t pid = 0;
    ThreadId thread;
    Slot answer;
  };
  static int on_make(sd_bus_message* call, void* data, sd_bus_error* error);
  static int on_answer(sd_bus_message* answer, void* data, sd_bus_error* error);
  static int on_reset(sd_bus_message* call, void* data, sd_bus_error* error);
  static int on_exit(sd_bus_message* call, void* data, sd_bus_error* error);
  static int limit(sd_bus*, const char*, const char*, const char* name, sd_bus_message* reply, void* data,
                   sd_bus_error*);
  static const sd_bus_vtable vtable[];

  // The wish and its caller; an error is for the caller.
  [[nodiscard]] Result<Question> question_of(sd_bus_message* call);
  [[nodiscard]] int ask_polkit(Question question, sd_bus_error* error);
  [[nodiscard]] Status give(const Question& question);
  [[nodiscard]] std::size_t threads_of(uid_t user);

  sd_event* loop_;
  sd_bus* bus_;
  SwapdClient& swapd_;
  std::string class_name_;
  RealtimeLimits limits_;
  ActionQuota quota_{limits_};
  sys::Procfs procfs_;
  sys::LinuxScheduler scheduler_;
  std::map<uid_t, std::set<ThreadId>> threads_;
  std::list<Question> questions_;
  Slot object_;
};

}  // namespace swapd::compat
