#include "observe/seccomp/seccomp_observer.h"

#include <algorithm>
#include <array>
#include <span>

namespace swapd::observe {

namespace {

constexpr std::size_t max_looked_at = 16;
constexpr std::size_t calls_a_drain = 4096;  // of one receiver: the engine's turn stays bounded
// A longer patience says that swapd is over its budget: then only the newest calls of each receiver are looked at.
constexpr Duration usual_patience = std::chrono::milliseconds(1);
constexpr std::size_t newest_calls = 64;

ThreadWatch::Settings probe(ThreadWatch::Settings settings, bool tracepoints, std::vector<std::string>& missing) {
  if (!settings.perf) return settings;
  settings.tracepoints = tracepoints && sys::TraceWatch::open(sys::TraceWatch::Point::sched_block, 0, true).ok();
  auto opened = sys::SwitchWatch::open(0);
  if (!opened) {
    settings.perf = false;
    missing.push_back("perf context-switch records: " + opened.error().text() + "; threads are polled instead");
  }
  return settings;
}

// Null: it cannot be had.
template <typename Watch>
std::unique_ptr<Watch> kept(Result<std::unique_ptr<Watch>> opened) {
  if (!opened) return nullptr;
  (*opened)->enable(false);
  return std::move(opened).value();
}

}  // namespace

SeccompObserver::SeccompObserver(const sys::Procfs& procfs, Resolver& resolver, Settings settings, Hooks hooks)
    : procfs_(procfs),
      resolver_(resolver),
      settings_(std::move(settings)),
      hooks_(std::move(hooks)),
      watch_(procfs, resolver, probe(settings_.watch, settings_.tracepoints, missing_), hooks_,
             [this](std::int32_t nr) { return std::ranges::find(settings_.trapped, nr) != settings_.trapped.end(); }) {
  if (settings_.watch.perf) kept_.switches = kept(sys::SwitchWatch::open(0));
  if (!settings_.tracepoints) return;
  auto signals = sys::TraceWatch::open(sys::TraceWatch::Point::signal_generate, -1);
  if (signals)
    signals_ = std::move(signals).value();
  else
    missing_.push_back("perf tracepoint signal_generate: " + signals.error().text() +
                       "; senders of signals are not known");
  if (settings_.watch.perf) kept_.blocks = kept(sys::TraceWatch::open(sys::TraceWatch::Point::sched_block, 0));
  auto waking = sys::TraceWatch::open(sys::TraceWatch::Point::sched_waking, 0);
  if (!waking) {
    settings_.tracepoints = false;
    missing_.push_back("perf tracepoint sched_waking: " + waking.error().text() +
                       "; wakers are guessed from the calls seen");
  }
  kept_.wakes = kept(std::move(waking));
}

SeccompObserver::~SeccompObserver() = default;

bool SeccompObserver::inherits(pid_t tid) const { return procfs_.has_seccomp_filters(tid); }

void SeccompObserver::add(std::shared_ptr<Receiver> receiver) { receivers_.push_back(std::move(receiver)); }

void SeccompObserver::remove(const Receiver* receiver) {
  std::erase_if(receivers_, [&](const auto& r) { return r.get() == receiver; });
}

void SeccompObserver::watch(const Member& member, bool sender) {
  watch_.add(member);
  if (sender && settings_.tracepoints) senders_.add(member.id, watch_.hears(member.id));
}

void SeccompObserver::unwatch(ThreadId thread) {
  watch_.remove(thread);
  senders_.remove(thread);
  last_signalled_.erase(thread);
  waker_inference_.unwatch(thread);
}

void SeccompObserver::look(ThreadId thread, Time now, std::vector<Event>& out) {
  const std::size_t first = out.size();
  watch_.look(thread, now, out);
  if (out.size() != first) name_wakers(first, out);
}

Status SeccompObserver::listen(sys::EventLoop& loop) {
  watch_.listen(loop);
  return Done{};
}

void SeccompObserver::trace_wakes(ThreadId thread) {
  if (settings_.tracepoints) wakers_.add(thread, watch_.hears(thread));
}

void SeccompObserver::untrace_wakes(ThreadId thread) { wakers_.remove(thread); }

void SeccompObserver::forget(ThreadId thread) {
  unwatch(thread);
  wakers_.remove(thread);
  waker_inference_.forget(thread);
}

void SeccompObserver::be_patient(ThreadId thread, Duration patience) {
  patience_ = patience;
  watch_.set_patience(thread, patience);
}

void SeccompObserver::resolve_again(ThreadId thread) { watch_.resolve_again(thread); }

void SeccompObserver::answer(const WaitAnswer& answer, std::vector<Event>& out) {
  const std::size_t first = out.size();
  watch_.answer(answer, out);
  for (std::size_t i = first; i < out.size(); ++i)
    if (const auto* blocked = std::get_if<Blocked>(&out[i])) waker_inference_.on_resolved(*blocked);
}

void SeccompObserver::drain(Time now, std::vector<Event>& out) {
  drain_calls(out);
  drain_signals(out);
  const std::size_t first = out.size();
  watch_.drain(now, out);
  const std::vector<ThreadId> turned = watch_.take_turned();
  if (out.size() != first || !turned.empty()) drain_wakes();  // before any of the rings is closed
  for (const ThreadId thread : turned) {
    for (WakeRecords* records : {&senders_, &wakers_}) records->hear(thread, watch_.hears(thread));
    last_signalled_.erase(thread);  // of before its turn
  }
  if (out.size() == first) return;
  name_wakers(first, out);
  report_sends(first, out);
}

void SeccompObserver::report_new(Time now, std::vector<Event>& out) {
  const std::size_t first = out.size();
  watch_.report_new(now, out);
  if (out.size() == first) return;
  name_wakers(first, out);
  report_sends(first, out);
}

void SeccompObserver::take(const RawCall& call, std::vector<Event>& out) {
  const auto member = hooks_.identify(call.tid);
  if (!member) return;
  const CallSite site{.tid = call.tid, .tgid = member->tgid, .nr = call.nr, .args = call.args};
  // Calls that tell the same are looked at once a drain: all of it is as of now.
  const auto known = std::ranges::find_if(looked_at_, [&](const auto& l) { return same_access(l.first, site); });
  if (known == looked_at_.end() && looked_at_.size() == max_looked_at) looked_at_.pop_front();
  const Access& access =
      known != looked_at_.end() ? known->second : looked_at_.emplace_back(site, resolver_.access(site)).second;
  report(member->id, call.time, access, out);
  watch_.answered(member->id, call.time);
  if (!access.complete) hooks_.ask_access({.thread = member->id, .time = call.time, .site = site});
}

// The newest call is the one that may have ended a wait.
void SeccompObserver::drain_newest_calls(Receiver& receiver, std::vector<Event>& out) {
  std::array<RawCall, 2 * newest_calls> calls;
  std::size_t kept = 0;
  for (std::size_t total = 0; total < calls_a_drain; total += newest_calls) {
    const std::size_t n = receiver.drain(calls.data() + kept, newest_calls);
    kept += n;
    if (kept > newest_calls) {
      std::copy_n(calls.begin() + static_cast<std::ptrdiff_t>(kept - newest_calls), newest_calls, calls.begin());
      kept = newest_calls;
    }
    if (n < newest_calls) break;
  }
  for (const RawCall& call : std::span(calls).first(kept)) take(call, out);
}

void SeccompObserver::drain_calls(std::vector<Event>& out) {
  std::array<RawCall, 64> calls;
  looked_at_.clear();
  for (const auto& receiver : receivers_) {
    if (patience_ > usual_patience) {
      drain_newest_calls(*receiver, out);
      continue;
    }
    for (std::size_t total = 0; total < calls_a_drain;) {
      const std::size_t n = receiver->drain(calls.data(), calls.size());
      for (const RawCall& call : std::span(calls).first(n)) take(call, out);
      total += n;
      if (n < calls.size()) break;
    }
  }
  waker_inference_.forget_old();
}

void SeccompObserver::report(ThreadId thread, Time time, const Access& access, std::vector<Event>& out) {
  for (const Resource& resource : access.accessed) {
    out.emplace_back(Accessed{.time = time, .thread = thread, .resource = resource});
    waker_inference_.on_access(resource, thread, time);
  }
  for (const Resource& resource : access.released)
    out.emplace_back(Released{.time = time, .thread = thread, .resource = resource});
}

void SeccompObserver::answer(const AccessAnswer& answer, std::vector<Event>& out) {
  report(answer.question.thread, answer.question.time, answer.access, out);
}

void SeccompObserver::drain_signals(std::vector<Event>& out) {
  if (!signals_) return;
  std::array<sys::TraceRecord, 64> records;
  while (const std::size_t n = signals_->read(records.data(), records.size())) {
    for (const sys::TraceRecord& r : std::span(records).first(n)) {
      const auto by = hooks_.identify(r.by);
      const auto target = hooks_.identify(r.target);
      if (!by || !target || by->id == target->id) continue;
      const auto receiver = hooks_.identify(target->tgid);  // the resource is named after the process
      if (!receiver) continue;
      const Resource resource = signal_to(receiver->id);
      out.emplace_back(Accessed{.time = r.time, .thread = by->id, .resource = resource});
      waker_inference_.on_access(resource, by->id, r.time);
      if (senders_.contains(by->id)) last_signalled_[by->id] = {target->id, r.time};
    }
    if (n < records.size()) break;
  }
}

// An interrupt that borrows a thread's time is not that thread's wake.
void SeccompObserver::drain_wakes() {
  wakers_.read_all([this](ThreadId waker, const sys::TraceRecord& r) {
    if (!r.hard_interrupt && hooks_.identify(r.target)) waker_inference_.on_wake(r.target, waker, r.time);
  });
}

void SeccompObserver::name_wakers(std::size_t first, std::vector<Event>& out) {
  for (Event& event : std::span(out).subspan(first)) {
    if (const auto* blocked = std::get_if<Blocked>(&event))
      waker_inference_.on_blocked(*blocked);
    else if (auto* woken = std::get_if<Woken>(&event); woken != nullptr && !woken->unrelated)
      waker_inference_.name(*woken);
  }
}

// Whom did a thread wake last before it began to wait? Probably the one it now waits for.
void SeccompObserver::report_sends(std::size_t first, std::vector<Event>& out) {
  const std::size_t end = out.size();
  for (std::size_t i = first; i < end; ++i) {
    const auto* blocked = std::get_if<Blocked>(&out[i]);
    if (blocked == nullptr || blocked->awaited.empty()) continue;
    if (!senders_.contains(blocked->thread)) continue;
    pid_t target = 0;
    senders_.read(blocked->thread, [&](const sys::TraceRecord& r) {
      if (r.target != blocked->thread.tid && hooks_.identify(r.target)) target = r.target;
    });
    // One that was not asleep was signalled all the same.
    if (const auto signalled = last_signalled_.find(blocked->thread); signalled != last_signalled_.end()) {
      if (target == 0) target = signalled->second.target.tid;
      last_signalled_.erase(signalled);
    }
    const auto to = target == 0 ? std::nullopt : hooks_.identify(target);
    if (!to) continue;
    const Time time = blocked->time;
    const std::vector<Resource> awaited = blocked->awaited;  // emplace_back moves the events
    for (const Resource& resource : awaited)
      out.emplace_back(Accessed{.time = time, .thread = to->id, .resource = resource, .evidence = Evidence::sent_to});
  }
}

}  // namespace swapd::observe
