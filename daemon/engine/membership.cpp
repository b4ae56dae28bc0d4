#include "engine/membership.h"

#include <array>
#include <cerrno>
#include <utility>

#include "engine/base_priority.h"
#include "observe/io/io_calls.h"

namespace swapd::daemon {

Membership::Membership(const Parts& parts, Options options)
    : parts_(parts),
      options_(options),
      quota_(parts.members, options.quota),
      weights_(options.weights_count, parts.members, parts.actuator, parts.worker),
      news_(weights_, parts.decisions, parts.observation, parts.shaper),
      tracker_({parts.kernel, parts.members, parts.observation.observer(), parts.actuator, listeners_, quota_,
                parts.feed, news_},
               parts.observation.needs_listeners()) {
  parts_.members.on_change([this] { signal_.set(); });
  parts_.members.on_member([this](const model::ManagedProcess& process, bool gone) {
    if (gone)
      parts_.shaper.leave(process.tgid);
    else if (!process.kernel)
      parts_.shaper.join(process.tgid, process.class_name);
  });
}

void Membership::open_events(std::vector<std::string>& warnings) {
  if (parts_.observation.observer().follows_children()) return;
  if (auto opened = sys::ProcEvents::open())
    proc_events_ = std::move(opened).value();
  else
    warnings.push_back("process connector: " + opened.error().text() + "; children are found by scans instead");
}

void Membership::add_listener(std::shared_ptr<observe::Receiver> receiver, pid_t pid, const std::string& class_name,
                              bool io, Time now) {
  // The processes that it has made so far have no filter, and are not managed.
  read_events(now);
  const observe::Receiver* listener = receiver.get();
  adopt_listener(std::move(receiver), pid);
  listeners_.bind(pid, listener);
  if (io) listeners_.traps_io(listener);
  tracker_.enroll_launched(pid, class_name, now);
  if (listeners_.size() == 1) parts_.thread.tick_soon(now);
}

void Membership::adopt_listener(std::shared_ptr<observe::Receiver> receiver, pid_t launch) {
  parts_.observation.add(receiver);
  listeners_.add(std::move(receiver), launch);
}

void Membership::remove_listener(const observe::Receiver* receiver) {
  parts_.observation.remove(receiver);
  listeners_.remove(receiver);
}

Result<std::size_t> Membership::enroll_threads(const std::vector<RosterAnswer::Entry>& threads,
                                               const std::string& class_name) {
  const Time now = parts_.kernel.clock.now();
  if (parts_.members.empty()) parts_.thread.tick_soon(now);
  return tracker_.enroll_threads(threads, class_name, now);
}

Result<std::size_t> Membership::reenroll(const std::vector<RosterAnswer::Entry>& threads, const model::Membership& as) {
  const Time now = parts_.kernel.clock.now();
  if (parts_.members.empty()) parts_.thread.tick_soon(now);
  return tracker_.reenroll(threads, as, now);
}

Status Membership::manage_again(pid_t pid, const std::string& class_name) {
  const Time now = parts_.kernel.clock.now();
  read_events(now);
  return tracker_.manage_again(pid, class_name, now);
}

void Membership::move_class(const std::string& from, const std::string& to) {
  const Time now = parts_.kernel.clock.now();
  read_events(now);
  tracker_.move_class(from, to, now);
}

Status Membership::set_base(pid_t pid, const AskedPriority& asked, bool may_raise) {
  std::vector<BasePriority::Changed> changed;
  Status set = BasePriority(parts_.members, parts_.kernel.scheduler, parts_.actuator, options_.dry_run)
                   .set(pid, asked, may_raise, changed);
  const Time now = parts_.kernel.clock.now();
  for (const auto& [thread, base] : changed) tracker_.set_base(thread, base, now);
  return set;
}

bool Membership::awaits_receiver(const Blocked& blocked) const {
  if (!listeners_.any_io() || !blocked.awaited.empty() || observe::io_call(blocked.call) == nullptr) return false;
  const model::ManagedThread* member = parts_.members.thread(blocked.thread);
  return member != nullptr && listeners_.has_io(member->tgid);
}

void Membership::read_events(Time now) {
  if (!proc_events_) return;
  std::array<sys::ProcEvent, 64> batch;
  for (;;) {
    const auto n = proc_events_->read(batch.data(), batch.size());
    if (!n) {  // some were lost
      tracker_.on_lost(1, now);
      if (n.error().code() == ENOBUFS) continue;
      proc_events_.reset();  // scans find the children from now on
      return;
    }
    for (const sys::ProcEvent& e : std::span(batch).first(*n)) tracker_.on_process_event(e, now);
    if (*n < batch.size()) return;
  }
}

void Membership::on_blocked(const Blocked& blocked) {
  if (options_.kernel_threads_help) tracker_.enroll_kernel_threads(blocked);
}

void Membership::tick(std::span<const decide::Donation> donations, Time now) {
  check_waiting_priorities(donations, now);
  have_receivers_follow();
  const bool children_are_told = proc_events_ != nullptr || parts_.observation.observer().follows_children();
  if (auto roster = tracker_.next_roster(now, children_are_told)) {
    parts_.worker.ask(std::move(*roster));
    weights_.look_at_all();
  }
}

// Priorities change while their owners wait [SWAP04 §4]: a waiting thread's own attributes are read each tick.
void Membership::check_waiting_priorities(std::span<const decide::Donation> donations, Time now) {
  Vector<ThreadId> requesters;  // a changed priority changes the donations
  for (const decide::Donation& donation : donations) requesters.push_back(donation.requester);
  for (const ThreadId requester : requesters) {
    const model::ManagedThread* member = parts_.members.thread(requester);
    if (member == nullptr || parts_.actuator.base(member->id)) continue;
    const auto attr = parts_.kernel.scheduler.get(member->id.tid);
    if (attr && *attr != member->base) tracker_.set_base(*member, *attr, now);
  }
  for (const auto& [thread, base] : std::exchange(rebased_, {}))
    if (const model::ManagedThread* member = parts_.members.thread(thread.tid);
        member != nullptr && member->id == thread && member->base != base)
      tracker_.set_base(*member, base, now);
}

void Membership::have_receivers_follow() {
  if (listeners_.size() == 0) return;
  std::vector<ListenerTable::Caller> realtime;
  const auto add = [&](pid_t tid) {
    if (const model::ManagedThread* member = parts_.members.thread(tid)) realtime.push_back({tid, member->tgid});
  };
  for (const pid_t tid : parts_.members.realtime()) add(tid);
  for (const actuate::Actuator::Active& active : parts_.actuator.active())
    if (active.lent.realtime()) add(active.boost.thread.tid);
  listeners_.follow(realtime, options_.receiver_priority, [this](pid_t tid) {
    const auto stat = parts_.kernel.procfs.stat(tid);
    return stat ? std::optional(stat->processor) : std::nullopt;
  });
}

}  // namespace swapd::daemon
