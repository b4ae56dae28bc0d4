// The bpf observer's relays: threads that are not managed and pass messages on (relays.h).
#include <algorithm>
#include <chrono>
#include <utility>

#include "observe/bpf/bpf_observer.h"

namespace swapd::observe {

namespace {

constexpr std::size_t max_asked_again = 64;       // whether they sleep
constexpr std::size_t max_looked_through = 2048;  // slots, to find out whom a relay has woken

bool awaits(const std::vector<Resource>& awaited, const Resource& one) {
  return std::ranges::find(awaited, one) != awaited.end();
}

}  // namespace

// As a watched thread, but for what is never asked of it: what it waits for.
void BpfObserver::observe_relay(ThreadId thread) {
  if (!tracer_->manage(thread.tid)) return relays_.forget(thread);
  ignore_gone(tracer_->watch(thread.tid, true, false));
  if (!runs(thread.tid)) relays_.blocked(thread.tid, std::chrono::steady_clock::now());
  if (is_message_bus(procfs_.comm(thread.tid).value_or(""))) relays_.prove(thread.tid);
}

void BpfObserver::stop_observing(ThreadId thread) {
  relays_.forget(thread);
  services_.forget(thread);
  ignore_gone(tracer_->unmanage(thread.tid));
}

bool BpfObserver::relays(ThreadId thread) const {
  return relays_.thread(thread.tid) == thread && relays_.passes_on(thread.tid);
}

bool BpfObserver::held_by(const Resource& resource, const std::vector<ThreadId>& strangers, std::vector<Event>& out) {
  if (resource.kind != ResourceKind::socket) return true;
  std::vector<ThreadId> dropped;
  for (const ThreadId thread : strangers) {
    if (managed_.contains(thread.tid)) continue;
    if (relays_.holds(resource, thread, dropped)) observe_relay(thread);
  }
  for (const ThreadId thread : dropped) stop_observing(thread);
  bool told = true;
  for (const auto& [tid, w] : watched_) {
    if (w->wait.blocked && !w->fresh && awaits(w->wait.awaited, resource)) told = name_passed_to(*w, out) && told;
  }
  return told;
}

void BpfObserver::take_of_relay(const sys::BpfRecord& record, std::vector<Event>& out) {
  if (record.what == sys::BpfRecord::What::woken)
    relays_.woken(record.tid, record.waker.tid, record.waker.tgid, record.time, record.wakes);
  else
    relays_.blocked(record.tid, record.time);
  if (!relays_.take_asked(record.tid)) return;
  ignore_gone(tracer_->watch(record.tid, true, false));
  for (const auto& [tid, w] : watched_)
    if (std::exchange(w->passes_on, w->passes_on == record.tid ? 0 : w->passes_on) == record.tid && w->wait.blocked)
      name_passed_to(*w, out);
}

// Managed threads of other processes that the relay was the last to wake, in this run. Nothing: so many that it was no
// message to one of them.
std::optional<std::vector<ThreadId>> BpfObserver::woken_in(const Watched& w, const Relays::Run& run) const {
  std::vector<ThreadId> found;
  for (const auto& [tid, id] : managed_) {
    const auto slot = tracer_->slot(tid);
    if (!slot || slot->waker.tid != run.tid || slot->order < run.first || slot->order > run.last) continue;
    const auto member = hooks_.identify(tid);
    if (member && member->tgid != w.wait.member.tgid) found.push_back(id);
    if (found.size() > Relays::max_passed_to) return std::nullopt;
  }
  return found;
}

// A thread that the relay has woken before, and that has slept from before this run until now, has not got the message:
// the relay would have woken it again.
bool BpfObserver::slept_through(ThreadId thread, const Relays::Run& run) const {
  const auto slot = tracer_->slot(thread.tid);
  return slot && slot->waker.tid == run.tid && slot->order < run.first && slot->blocked_at < run.from &&
         !runs(thread.tid);
}

// The message woke no thread: the service was awake, or was woken before the relay was looked at. Those that the relay
// was the last to wake, however long ago, and that want a CPU; where none does, those that may have been awake: they
// may wait for another thread that does.
std::vector<ThreadId> BpfObserver::woken_last(const Watched& w, const Relays::Run& run) const {
  std::vector<ThreadId> found;
  for (const auto& [tid, id] : managed_) {
    const auto slot = tracer_->slot(tid);
    const auto member = slot && slot->waker.tid == run.tid ? hooks_.identify(tid) : std::nullopt;
    if (member && member->tgid != w.wait.member.tgid && !slept_through(id, run)) found.push_back(id);
    if (found.size() > max_asked_again) return {};
  }
  const auto sleeps = [this](ThreadId id) { return !runs(id.tid); };
  if (!std::ranges::all_of(found, sleeps)) std::erase_if(found, sleeps);
  if (found.size() > Relays::max_passed_to) found.clear();
  return found;
}

// Services that have answered this program through the relay are a family, too.
Family BpfObserver::callers_of(pid_t relay, const Watched& w) const {
  const auto thread = relays_.thread(relay);
  const auto program = procfs_.exe_identity(w.wait.member.tgid);
  if (!thread || !program) return {};
  return {.parent = *thread, .dev = program->dev, .ino = program->ino};
}

// Names the thread to which a relay has passed on the message that was sent before this wait. Known when the relay
// sleeps again. False: it may have woken the thread before its wakes were recorded, and no thread is known.
bool BpfObserver::name_passed_to(Watched& w, std::vector<Event>& out) {
  if (relays_.empty() || !w.wait.blocked || w.wait.awaited.empty() || managed_.size() > max_looked_through) return true;
  auto run = relays_.run_of(w.wait.member.tgid, w.wait.awaited, w.ended_at, w.wait.since);
  if (!run) return true;
  const bool proven = relays_.proven(run->tid);
  if (!run->over) {
    w.passes_on = run->tid;
    relays_.ask(run->tid);
    ignore_gone(tracer_->watch(run->tid, true, true));
    // Its block before that is told by nothing.
    if (!runs(run->tid)) {
      relays_.blocked(run->tid, std::chrono::steady_clock::now());
      run->over = true;
    }
    if (!run->over && !run->unseen) return true;
  }
  const Resource resource = *relays_.end_of(run->tid, w.wait.awaited);
  Evidence evidence = proven ? Evidence::relayed : Evidence::guess;
  // If the relay woke the waiter itself in this run, with the answer to an earlier message, it passed this one on after
  // that.
  const auto own = tracer_->slot(w.wait.member.id.tid);
  if (own && own->waker.tid == run->tid) run->first = std::max(run->first, own->order + 1);
  auto passed_to = woken_in(w, *run);
  if (!passed_to) return true;
  if (!passed_to->empty()) relays_.passed_on(run->tid);
  if (passed_to->empty() && proven && run->began_it) {  // the service was awake
    passed_to = services_.of(callers_of(run->tid, w));
    std::erase_if(*passed_to, [&](ThreadId service) { return slept_through(service, *run); });
    evidence = passed_to->size() == 1 ? Evidence::kin : Evidence::guess;
  }
  if (passed_to->empty()) {
    evidence = Evidence::guess;
    passed_to = woken_last(w, *run);
  }
  // Threads that are told again are of the same wait: a guess goes with each look at who holds the other end.
  if (!passed_to->empty()) w.passed_to = std::move(*passed_to);
  for (const ThreadId thread : w.passed_to)
    out.emplace_back(Accessed{.time = w.wait.since, .thread = thread, .resource = resource, .evidence = evidence});
  return !run->over || !run->unseen || !w.passed_to.empty();
}

// Who has answered through a relay that is awake since the waiter's own message woke it: the one that it has woken
// since then, if it was one, and has had a CPU. (A boosted service takes the CPU from a relay that is about to sleep.)
std::optional<Member> BpfObserver::answered_meanwhile(const Watched& w, pid_t relay) const {
  if (managed_.size() > max_looked_through) return std::nullopt;
  const auto run = relays_.run_of(w.wait.member.tgid, w.wait.awaited, w.ended_at, w.wait.since);
  if (!run || run->tid != relay || run->over || !run->began_it || !relays_.proven(relay)) return std::nullopt;
  const auto passed_to = woken_in(w, *run);
  if (!passed_to || passed_to->size() != 1) return std::nullopt;
  const auto slot = tracer_->slot(passed_to->front().tid);
  if (!slot || slot->phase == sys::ThreadSlot::Phase::woken) return std::nullopt;
  return hooks_.identify(passed_to->front().tid);
}

// The relay wakes the waiter because another thread has woken the relay. That one is believed where it is whom the
// message of this wait was passed on to: that is a round trip. Of an answer that was asked for otherwise, where relays
// are known to pass on and this one slept as the wait began (a bus answers some messages itself).
void BpfObserver::credit_through(Watched& w, const sys::Waker& relay, Woken& woken) {
  woken.unrelated = true;
  const auto thread = relays_.thread(relay.tid);
  if (!thread) return;
  const auto meanwhile = answered_meanwhile(w, relay.tid);
  const auto by = meanwhile ? meanwhile : hooks_.identify(relays_.last_sender(relay.tid));
  if (!by || by->tgid == w.wait.member.tgid) return;
  const bool round_trip = meanwhile || std::ranges::find(w.passed_to, by->id) != w.passed_to.end();
  const bool answer = relays_.proven(relay.tid) && relays_.woken_after(relay.tid, w.wait.since);
  if (!round_trip && (!w.passed_to.empty() || !answer)) return;
  // After a round trip the call need not tell: a client that lives for one request may have gone with its socket.
  const auto through = round_trip ? relays_.end_of(relay.tid, w.wait.awaited)
                                  : understand(w, {*thread, relay.tgid}, relay, woken.time).through;
  if (!through) return;
  if (round_trip) {
    relays_.prove(relay.tid);
    if (const Family callers = callers_of(relay.tid, w); callers.valid()) services_.ended(callers, by->id, false);
  }
  woken.by = by->id;
  woken.through = through;
  woken.unrelated = false;
}

}  // namespace swapd::observe
