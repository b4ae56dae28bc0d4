// A member tracker with a kernel, an observer and followers that are fakes.
#pragma once

#include "engine/member_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fakes/fake_groups.h"
#include "fakes/fake_proc.h"
#include "fakes/fake_scheduler.h"
#include "unit/daemon/engine_words.h"

namespace swapd::daemon {

// Remembers what it was told to manage.
class FakeObserver final : public observe::Observer {
 public:
  [[nodiscard]] bool follows_children() const override { return follows; }
  [[nodiscard]] Status manage(const observe::Member& member) override {
    if (full) return Error(ENOSPC, "manage");
    managed.insert(member.id.tid);
    return Done{};
  }
  void release(ThreadId thread) override {
    managed.erase(thread.tid);
    released.push_back(thread.tid);
  }
  [[nodiscard]] bool inherits(pid_t tid) const override { return !strangers.contains(tid); }
  [[nodiscard]] Status listen(sys::EventLoop& /*loop*/) override { return Done{}; }
  [[nodiscard]] std::optional<Time> deadline() const override { return std::nullopt; }
  void drain(Time /*now*/, std::vector<Event>& /*out*/) override {}
  void report_new(Time /*now*/, std::vector<Event>& /*out*/) override {}
  void watch(const observe::Member& /*member*/, bool /*sender*/) override {}
  void unwatch(ThreadId /*thread*/) override {}
  void look(ThreadId /*thread*/, Time /*now*/, std::vector<Event>& /*out*/) override {}
  void resolve_again(ThreadId /*thread*/) override {}
  void trace_wakes(ThreadId /*thread*/) override {}
  void untrace_wakes(ThreadId /*thread*/) override {}
  void answer(const observe::WaitAnswer& /*answer*/, std::vector<Event>& /*out*/) override {}
  void answer(const observe::AccessAnswer& /*answer*/, std::vector<Event>& /*out*/) override {}
  void forget(ThreadId /*thread*/) override {}
  [[nodiscard]] observe::Costs costs() const override { return {}; }

  bool follows = true, full = false;
  std::set<pid_t> managed, strangers;
  std::vector<pid_t> released;
};

class IdleReceiver final : public observe::ReceiverHandle {
 public:
  [[nodiscard]] std::uint64_t received() const override { return 0; }
  [[nodiscard]] pid_t last_caller() const override { return 0; }
  [[nodiscard]] std::uint64_t lost() const override { return 0; }
  [[nodiscard]] Duration cpu_time() const override { return {}; }
  void set_urgent(bool /*urgent*/) override {}
  [[nodiscard]] Status follow(int /*cpu*/, int /*priority*/) override { return Done{}; }
};

class Told final : public MemberTracker::Followers {
 public:
  void on_event(const Event& event) override {
    if (const auto* in = std::get_if<Enrolled>(&event)) enrolled.push_back(*in);
    if (const auto* out = std::get_if<Exited>(&event)) exited.push_back(out->thread.tid);
    if (const auto* child = std::get_if<Accessed>(&event)) accessed.push_back(child->resource);
    if (const auto* exec = std::get_if<Execed>(&event)) execed.push_back(exec->thread.tid);
  }
  void on_left(ThreadId thread, bool ended) override { left.emplace_back(thread.tid, ended); }
  void on_forked(ThreadId parent, Time /*now*/) override { forked.push_back(parent.tid); }
  void on_process_born(pid_t child, pid_t parent) override { born.emplace_back(child, parent); }
  void on_process_released(pid_t tgid, std::uint64_t /*start_time*/) override { processes_released.push_back(tgid); }
  void on_image_gone(pid_t tgid) override { images_gone.push_back(tgid); }
  void on_number_free(pid_t tid) override { numbers_free.push_back(tid); }

  std::vector<Enrolled> enrolled;
  std::vector<pid_t> exited, execed, forked, processes_released, images_gone, numbers_free;
  std::vector<std::pair<pid_t, bool>> left;
  std::vector<std::pair<pid_t, pid_t>> born;
  std::vector<Resource> accessed;
};

class MemberTrackerTest : public testing::Test {
 protected:
  MemberTrackerTest() {
    groups_.enabled = false;
    feed_.want(Notes::all);
    begin({.processes = 4, .threads = 6});
  }
  void begin(UserQuota::Limits limits, bool by_filter = false) {
    quota_.emplace(members_, limits);
    tracker_.emplace(MemberTracker::Parts{kernel_, members_, observer_, actuator_, listeners_, *quota_, feed_, told_},
                     by_filter);
  }
  // A thread that /proc and the scheduler know.
  void make(pid_t tid, std::uint64_t start = 1, int nice = 0, std::uint32_t uid = alice) {
    proc_.add(tid, {.start_time = start, .uid = uid});
    scheduler_.add(tid, nice_of(nice));
  }
  void end(pid_t tid) {
    proc_.remove(tid);
    scheduler_.threads.erase(tid);
  }
  static RosterAnswer::Entry entry(pid_t tid, pid_t tgid, std::uint64_t start = 1, pid_t parent = 0,
                                   std::uint32_t uid = alice) {
    return {.id = {tid, start}, .tgid = tgid, .parent = parent, .uid = uid, .attr = nice_of(0), .process_start = start};
  }
  // Process 10 is managed, in class "batch".
  void manage(pid_t pid = 10, std::uint32_t uid = alice) {
    make(pid, 1, 0, uid);
    ASSERT_TRUE(tracker_->enroll_threads({entry(pid, pid, 1, 0, uid)}, "batch", now_));
  }
  void fork(pid_t child, pid_t parent, std::uint64_t start = 5) {
    tracker_->on_process_event({.what = sys::ProcEvent::What::fork,
                                .tid = child,
                                .tgid = child,
                                .parent_tid = parent,
                                .parent_tgid = parent,
                                .start_time = start},
                               now_);
  }
  void fork_thread(pid_t tid, pid_t tgid, std::uint64_t start = 5) {
    tracker_->on_process_event({.what = sys::ProcEvent::What::fork,
                                .tid = tid,
                                .tgid = tgid,
                                .parent_tid = tgid,
                                .parent_tgid = tgid,
                                .start_time = start},
                               now_);
  }
  void exit(pid_t tid) {
    tracker_->on_process_event({.what = sys::ProcEvent::What::exit, .tid = tid, .tgid = tid}, now_);
  }
  void exec(pid_t tgid, pid_t former = 0) {
    tracker_->on_process_event({.what = sys::ProcEvent::What::exec, .tid = tgid, .tgid = tgid, .former_tid = former},
                               now_);
  }
  std::vector<Note::Type> notes() {
    std::vector<Note::Type> out;
    for (const Note& note : feed_.take()) out.push_back(note.type);
    return out;
  }
  void boost(pid_t tid, const SchedAttr& attr) {
    actuate::Boost boost;
    boost.thread = {tid, 1};
    boost.requester = {99, 1};
    boost.attr = attr;
    actuator_.apply({&boost, 1}, now_);
  }

  Time now_{std::chrono::seconds(100)};
  fakes::FakeProc proc_;
  const sys::Procfs procfs_{proc_.root()};
  fakes::FakeScheduler scheduler_;
  fakes::FakeGroups groups_;
  ManualClock clock_;
  Kernel kernel_{procfs_, scheduler_, groups_, clock_};
  model::ManagedSet members_{{"batch", "interactive"}};
  FakeObserver observer_;
  actuate::Actuator actuator_{scheduler_, groups_, {.boot_id = "this-boot", .start_time = [](pid_t) {
                                                      return std::optional<std::uint64_t>(1);
                                                    }}};
  ListenerTable listeners_;
  EventFeed feed_{members_, clock_};
  Told told_;
  std::optional<UserQuota> quota_;
  std::optional<MemberTracker> tracker_;
};

}  // namespace swapd::daemon
