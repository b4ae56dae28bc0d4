#include "observe/seccomp/thread_watch.h"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace swapd::observe {

namespace {
constexpr std::size_t max_open = 1024;  // threads whose /proc/TID/syscall stays open
}  // namespace

ThreadWatch::ThreadWatch(const sys::Procfs& procfs, Resolver& resolver, Settings settings, Observer::Hooks hooks,
                         std::function<bool(std::int32_t)> trapped)
    : procfs_(procfs),
      settings_(settings),
      hooks_(std::move(hooks)),
      teller_(resolver, hooks_),
      trapped_(std::move(trapped)) {}

std::optional<Time> ThreadWatch::deadline() const {
  if (!fresh_.empty() || !hearing_.changing.empty() || !hearing_.untold.empty()) return Time{};
  const std::optional<Time> due = teller_.next_look();
  if (polled_ == 0) return due;
  return std::min(next_poll_, due.value_or(Time::max()));
}

void ThreadWatch::ready(Watched& w, bool hung_up) {
  ready_.push_back(w.wait.member.id);
  // The thread is gone, which its exit says too, and sooner or later; until then the descriptor would stay readable.
  if (!hung_up) return;
  w.hears_turns.reset();
  w.hears_blocks.reset();
}

void ThreadWatch::add(const Member& member) {
  auto& slot = watched_[member.id];
  if (slot) return;
  slot = std::make_unique<Watched>();
  slot->wait.member = member;
  if (hearing_.threads < hearing_.turns.room(watched_.size()))
    begin_hearing(*slot);
  else
    hearing_.untold.push_back(member.id);
}

void ThreadWatch::open(Watched& w) {
  const pid_t tid = w.wait.member.id.tid;
  if (!w.call && hearing_.threads <= max_open)
    if (auto call = procfs_.open_syscall(tid)) w.call = std::move(call).value();
  if (settings_.perf && loop_ != nullptr) {
    if (auto opened = sys::SwitchWatch::open(tid)) {
      w.perf = std::move(opened).value();
      w.hears_turns = hear_of(w, w.perf->fd());
      if (!w.hears_turns) w.perf.reset();
    }
  }
  if (w.perf && settings_.tracepoints) {
    if (auto opened = sys::TraceWatch::open(sys::TraceWatch::Point::sched_block, tid, true)) {
      w.blocks = std::move(opened).value();
      w.hears_blocks = hear_of(w, w.blocks->fds().front());
      if (!w.hears_blocks) w.blocks.reset();
    }
  }
}

void ThreadWatch::begin_hearing(Watched& w) {
  w.heard = w.fresh = true;
  w.busy.forget();
  ++hearing_.threads;
  open(w);
  if (!w.perf) {
    w.polled = true;
    w.poll_until = Time::max();
    next_poll_ = {};
    ++polled_;
  }
  fresh_.push_back(&w);
}

// An event that is disabled costs the thread time whenever it gets or leaves a CPU, too.
void ThreadWatch::close(Watched& w) {
  w.hears_turns.reset();
  w.hears_blocks.reset();
  w.blocks.reset();
  w.perf.reset();
}

void ThreadWatch::end_hearing(Watched& w, Time now, std::vector<Event>& out) {
  w.heard = w.fresh = false;
  --hearing_.threads;
  std::erase(fresh_, &w);
  if (std::exchange(w.polled, false)) --polled_;
  close(w);
  w.call.reset();
  if (!w.wait.blocked) return;
  teller_.wake(w.wait, now, out);
  std::get<Woken>(out.back()).unrelated = true;  // as far as we know
}

bool ThreadWatch::hears(ThreadId thread) const {
  const auto found = watched_.find(thread);
  return found != watched_.end() && found->second->heard;
}

std::vector<ThreadId> ThreadWatch::take_turned() { return std::exchange(hearing_.changed, {}); }

void ThreadWatch::plan_turns(Time now) {
  std::vector<ThreadId> threads;
  threads.reserve(watched_.size());
  for (const auto& [id, w] : watched_) threads.push_back(id);
  hearing_.turns.give(threads, now);
  const std::size_t most = hearing_.turns.room(threads.size());
  hearing_.changing.clear();
  for (std::size_t place = 0; place < threads.size(); ++place)  // those that begin come last
    if (watched_.at(threads[place])->heard != (place < most))
      hearing_.changing.emplace_back(threads[place], place < most);
}

// The others' with the next drain.
void ThreadWatch::take_turns(Time now, std::vector<Event>& out) {
  if (hearing_.turns.due(now, hearing_.threads == watched_.size())) plan_turns(now);
  for (std::size_t i = 0; i < HearingTurns::most_at_a_time && !hearing_.changing.empty(); ++i) {
    const auto [thread, heard] = hearing_.changing.back();
    hearing_.changing.pop_back();
    const auto found = watched_.find(thread);
    if (found == watched_.end() || found->second->heard == heard) continue;
    hearing_.changed.push_back(thread);
    if (heard)
      begin_hearing(*found->second);
    else
      end_hearing(*found->second, now, out);
  }
}

// Empty: it cannot be heard of, and the thread is polled.
sys::EventLoop::Registration ThreadWatch::hear_of(Watched& w, int descriptor) {
  auto added = loop_->add(
      descriptor, [this, &w](const sys::EventLoop::Ready& r) { ready(w, r.hung_up); },
      sys::EventLoop::Urgency::can_wait);
  return added ? std::move(added).value() : sys::EventLoop::Registration();
}

void ThreadWatch::hear_of_turns(const Watched& w, bool on) {
  if (w.blocks) w.perf->pause(!on);
}

void ThreadWatch::remove(ThreadId thread) {
  const auto found = watched_.find(thread);
  if (found == watched_.end()) return;
  if (found->second->polled) --polled_;
  if (found->second->heard) --hearing_.threads;
  std::erase(fresh_, found->second.get());
  watched_.erase(found);
}

void ThreadWatch::report_new(Time now, std::vector<Event>& out) {
  std::vector<Watched*> fresh;
  fresh.swap(fresh_);
  for (Watched* w : fresh) {
    w->fresh = false;
    look(*w, now, false, out);  // hears of turns already
    if (!w->wait.blocked) hear_of_turns(*w, false);
  }
  for (const ThreadId thread : std::exchange(hearing_.untold, {}))
    if (const auto found = watched_.find(thread); found != watched_.end() && !found->second->heard)
      tell_runs(*found->second, now, out);
}

// A wait of before it was watched may be known of it.
void ThreadWatch::tell_runs(Watched& w, Time now, std::vector<Event>& out) {
  if (w.wait.generation++ == 0) out.emplace_back(Woken{.time = now, .thread = w.wait.member.id, .unrelated = true});
}

void ThreadWatch::drain(Time now, std::vector<Event>& out) {
  take_turns(now, out);
  report_new(now, out);  // before any record of it: what it did before nobody asked
  being_read_.swap(ready_);
  for (const ThreadId thread : being_read_)
    if (const auto found = watched_.find(thread); found != watched_.end()) read_records(*found->second, now, out);
  being_read_.clear();
  teller_.ask_due(now, [this](ThreadId thread) {
    const auto found = watched_.find(thread);
    return found == watched_.end() ? nullptr : &found->second->wait;
  });
  if (polled_ == 0 || now < next_poll_) return;
  next_poll_ = Time::max();
  for (auto& [id, w] : watched_) {
    if (!w->polled) continue;
    if (now >= w->next_poll) poll(*w, now, out);
    if (w->polled) next_poll_ = std::min(next_poll_, w->next_poll);
  }
}

void ThreadWatch::poll(Watched& w, Time now, std::vector<Event>& out) {
  ++counts_.polls;
  w.next_poll = now + poll_period(w);
  look(w, now, false, out);
  if (now >= w.poll_until) end_rest(w, now, out);
}

Duration ThreadWatch::poll_period(const Watched& w) const { return std::max(settings_.poll_period, w.patience); }

void ThreadWatch::set_patience(ThreadId thread, Duration patience) {
  const auto found = watched_.find(thread);
  if (found == watched_.end()) return;
  Watched& w = *found->second;
  if (w.polled) {  // less patient: not later than it would be polled from now on
    const Time latest = w.next_poll - poll_period(w) + std::max(settings_.poll_period, patience);
    w.next_poll = std::min(w.next_poll, latest);
    next_poll_ = std::min(next_poll_, w.next_poll);
  }
  w.patience = patience;
}

void ThreadWatch::look(ThreadId thread, Time now, std::vector<Event>& out) {
  const auto found = watched_.find(thread);
  if (found != watched_.end() && found->second->heard && !found->second->fresh) look(*found->second, now, false, out);
}

void ThreadWatch::answered(ThreadId thread, Time time) {
  if (const auto found = watched_.find(thread); found != watched_.end()) found->second->answered = time;
}

void ThreadWatch::rest(Watched& w, Time now) {
  w.polled = true;
  w.next_poll = now + poll_period(w);
  w.poll_until = now + w.busy.rest(now, w.patience);
  next_poll_ = polled_++ == 0 ? w.next_poll : std::min(next_poll_, w.next_poll);
  close(w);
}

// It is polled on if records are not to be had any more.
void ThreadWatch::end_rest(Watched& w, Time now, std::vector<Event>& out) {
  open(w);
  if (!w.perf) {
    w.poll_until = Time::max();
    return;
  }
  w.polled = false;
  --polled_;
  w.busy.begin(now);
  look(w, now, false, out);  // what came before may have gone unheard
  if (!w.wait.blocked) hear_of_turns(w, false);
}

void ThreadWatch::read_records(Watched& w, Time now, std::vector<Event>& out) {
  if (!w.perf) return;  // it is not heard of any more
  std::array<sys::SwitchRecord, 64> turns;
  std::array<sys::TraceRecord, 16> sleeps;
  const std::size_t turned = w.perf->read(turns.data(), turns.size());
  std::size_t slept = 0;
  Time last_sleep{};
  while (w.blocks) {
    const std::size_t n = w.blocks->read(sleeps.data(), sleeps.size());
    if (n > 0) last_sleep = sleeps.at(n - 1).time;
    slept += n;
    if (n < sleeps.size()) break;
  }
  if ((turned == 0 && slept == 0) || w.polled) return;
  ++counts_.wakeups;
  const auto used = std::span(turns).first(turned);
  // Many sleeps may be one wake-up of ours; to write each down still cost the CPU that it slept on.
  const auto left = static_cast<std::size_t>(
      std::ranges::count_if(used, [](const sys::SwitchRecord& r) { return r.out && !r.preempted; }));
  const auto times = static_cast<unsigned>(std::max({slept, left, std::size_t{1}}));
  if (w.busy.sleeps_too_often(times, now, w.patience, settings_.poll_period)) rest(w, now);
  bool ran = std::any_of(used.begin(), used.end(), [](const sys::SwitchRecord& r) { return !r.out; });
  const bool sleeps_now = turned > 0 && used.back().out && !used.back().preempted;
  const bool fell_asleep = slept > 0 || sleeps_now;
  const Time last = slept > 0 ? last_sleep : used.back().time;
  // Of many sleeps the last ones may be lost.
  if (fell_asleep && (last > w.answered || slept >= sleeps.size())) {
    ran = ran || (w.wait.blocked && last_sleep > w.wait.since);  // it fell asleep again: it has run
    if (!w.polled) hear_of_turns(w, true);                       // before the look, so that no turn falls between
    look(w, last, ran, out);
    if (!w.wait.blocked && !w.polled) hear_of_turns(w, false);
  } else if (ran || fell_asleep) {  // or what it slept in was its own notification
    teller_.wake(w.wait, last, out);
    if (!w.polled) hear_of_turns(w, false);
  }
}

void ThreadWatch::look(Watched& w, Time now, bool ran_meanwhile, std::vector<Event>& out) {
  const auto state = w.call ? sys::Procfs::syscall(w.call) : procfs_.syscall(w.wait.member.id.tid);
  if (!state) return;  // gone, or not ours to read: it counts as runnable
  if (state->running) {
    if (w.wait.blocked)
      teller_.wake(w.wait, now, out);
    else
      tell_runs(w, now, out);
    return;
  }
  CallSite site{.tid = w.wait.member.id.tid, .tgid = w.wait.member.tgid, .nr = state->nr, .args = state->args};
  if (!state->in_call) {
    site.nr = -1;
    site.args = {};
  } else if (trapped_(site.nr) && procfs_.held_by_seccomp(w.wait.member.id.tid)) {
    return;  // it waits for our own answer
  }
  if (w.wait.blocked && !ran_meanwhile && same_call(site, w.wait.site)) return;
  teller_.wake(w.wait, now, out);
  teller_.block(w.wait, now, site, out);
}

void ThreadWatch::resolve_again(ThreadId thread) {
  if (const auto found = watched_.find(thread); found != watched_.end()) teller_.resolve_again(found->second->wait);
}

void ThreadWatch::answer(const WaitAnswer& answer, std::vector<Event>& out) {
  if (const auto found = watched_.find(answer.question.thread); found != watched_.end())
    teller_.answer(found->second->wait, answer, out);
}

Costs ThreadWatch::costs() const {
  return {.watched = watched_.size(),
          .unheard = watched_.size() - hearing_.threads,
          .wakeups = counts_.wakeups,
          .polls = counts_.polls,
          .method = settings_.perf ? Costs::Method::perf : Costs::Method::poll};
}

}  // namespace swapd::observe
