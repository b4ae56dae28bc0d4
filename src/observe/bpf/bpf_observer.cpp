#include "observe/bpf/bpf_observer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <string_view>
#include <utility>

#include "observe/bpf/short_lived_children.h"
#include "observe/resolve/compat_calls.h"
#include "observe/resolve/kernel_waits.h"
#include "observe/resolve/syscall_table.h"

namespace swapd::observe {

namespace {

constexpr int max_tries = 4;
constexpr Duration writes_arrive = std::chrono::microseconds(50);  // long before, what a CPU has written
constexpr Duration hint_rest = std::chrono::milliseconds(100);
constexpr Duration names_nobody = std::chrono::milliseconds(5);   // so long, and it is asked what it is for …
constexpr Duration nobody_rest = std::chrono::milliseconds(100);  // … but not so soon after that was of no use
constexpr int longest_chain = 32;                                 // of silent waits
constexpr std::size_t max_asked = 512;           // threads whose last waker is read to find out whom a thread has woken
constexpr std::uint16_t sleeps_stopped = 4 | 8;  // sched.h: stopped by a signal, traced

// A wait that the call and its first argument tell from others. The members of a poll set are in memory.
bool distinct(const WaitState& wait) {
  const std::vector<Resource>& awaited = wait.awaited;
  const bool one = std::ranges::all_of(awaited, [&](const Resource& r) {
    return r.kind == awaited.front().kind && r.ids[0] == awaited.front().ids[0] && r.ids[1] == awaited.front().ids[1];
  });
  if (awaited.empty() || !one) return false;
  switch (call_entry(wait.site.nr).kind) {
    case CallKind::transfer:
    case CallKind::accept:
    case CallKind::epoll:
    case CallKind::sysv_msg:
    case CallKind::sysv_sem:
    case CallKind::posix_mq:
    case CallKind::flock:
    case CallKind::fcntl:
    case CallKind::signal_wait:
    case CallKind::futex:
      return true;
    default:
      return false;
  }
}

CallSite site_of(const Member& member, std::int32_t call, const std::array<std::uint64_t, 6>& args, bool compat,
                 std::uint16_t sleep) {
  CallSite site{
      .tid = member.id.tid, .tgid = member.tgid, .nr = call, .args = args, .process_start = member.process_start};
  if ((sleep & sleeps_stopped) != 0) return {.tid = site.tid, .tgid = site.tgid};
  if (compat) site.nr = native_call(call);
  return site;
}

}  // namespace

BpfObserver::BpfObserver(std::unique_ptr<sys::BpfTracer> tracer, const sys::Procfs& procfs, Resolver& resolver,
                         Hooks hooks)
    : tracer_(std::move(tracer)),
      procfs_(procfs),
      hooks_(std::move(hooks)),
      resolver_(resolver),
      teller_(resolver, hooks_),
      patient_({.glance = [this](pid_t tid) { return tracer_->glance(tid); },
                .woken_by =
                    [this](pid_t tid) {
                      const auto slot = tracer_->glance(tid);
                      return slot && managed_.contains(slot->waker) ? slot->waker : 0;
                    },
                .least_running = [this] { return least_running(); }}) {}

BpfObserver::~BpfObserver() = default;

Status BpfObserver::listen(sys::EventLoop& loop) {
  auto added = loop.add(
      tracer_->fd(), [this](const sys::EventLoop::Ready&) { ++wakeups_; }, sys::EventLoop::Urgency::can_wait);
  if (!added) return std::move(added).error().in("listening to the BPF programs");
  ring_ = std::move(added).value();
  return Done{};
}

std::optional<Time> BpfObserver::deadline() const {
  if (!fresh_.empty() || (watched_.empty() && tracer_->follows() && !follows_until_)) return Time{};
  std::optional<Time> due = follows_until_;
  if (const auto look = teller_.next_look()) due = std::min(*look, due.value_or(Time::max()));
  for (const auto* waits : {&nameless_, &nameless_again_})
    if (!waits->empty()) due = std::min(waits->front().due, due.value_or(Time::max()));
  if (!looked_at_.empty()) due = std::min(looked_at_.front().first + writes_arrive, due.value_or(Time::max()));
  if (const auto look = patient_.due()) due = std::min(*look, due.value_or(Time::max()));
  return due;
}

void BpfObserver::drain(Time now, std::vector<Event>& out) {
  tracer_->tell_time(now);
  report_new(now, out);
  std::array<sys::BpfRecord, max_records> records;
  for (std::size_t total = 0; total < records_a_drain;) {
    const std::size_t n = tracer_->read(records.data(), records.size());
    const auto batch = std::span(records).first(n);
    const auto skipped = hooks_.every_life && hooks_.every_life()
                             ? std::bitset<max_records>()
                             : short_lives(batch, [this](pid_t tid) { return managed_.contains(tid); });
    for (std::size_t i = 0; i < n; ++i)
      if (!skipped[i]) take(batch[i], out);
    total += n;
    if (n < records.size()) {
      look_again(now, out);
      break;
    }
  }
  look_at_patient(now, out);
  ask_for_names(now);
  teller_.ask_due(now, [this](ThreadId thread) {
    Watched* w = find(thread);
    return w == nullptr ? nullptr : &w->wait;
  });
  look_for_losses(now, out);
  follow_while_needed(now);
}

void BpfObserver::report_new(Time now, std::vector<Event>& out) {
  std::vector<Watched*> fresh;
  fresh.swap(fresh_);
  for (Watched* w : fresh) {
    w->fresh = false;
    read_slot(*w, now, out);
    if (w->unsure) looked_at_.emplace_back(std::max(now, std::chrono::steady_clock::now()), w->wait.member.id);
    if (w->wait.blocked) continue;
    w->told = std::max(now, w->told);
    out.emplace_back(Woken{.time = w->told, .thread = w->wait.member.id, .unrelated = true});
  }
}

// A thread that is not watched yet waits for no other CPU to see what it writes (tracer.bpf.c, block_unwatched), so at
// the first look a block or a wake may have been on its way, of which no record comes. The ring has been read before:
// from its first record on, nothing of a thread is missed.
void BpfObserver::look_again(Time now, std::vector<Event>& out) {
  while (!looked_at_.empty() && looked_at_.front().first + writes_arrive <= now) {
    Watched* w = find(looked_at_.front().second);
    looked_at_.pop_front();
    if (w == nullptr || w->fresh || !w->unsure) continue;
    read_slot(*w, now, out);
    w->unsure = false;
  }
}

void BpfObserver::take(const sys::BpfRecord& record, std::vector<Event>& out) {
  using What = sys::BpfRecord::What;
  using Life = sys::ProcEvent::What;
  switch (record.what) {
    case What::fork: {
      if (!record.without_slot) {
        managed_[record.tid] = {record.tid, record.start_time};
        // Its slot says what it has done so far. A look at the roster may have come before.
        if (!watched_.contains(record.tid)) ignore_gone(tracer_->watch(record.tid, false, false));
      }
      hooks_.lifecycle({.what = Life::fork,
                        .tid = record.tid,
                        .tgid = record.tgid,
                        .parent_tid = record.parent,
                        .parent_tgid = record.parent_tgid,
                        .start_time = record.start_time});
      break;
    }
    case What::exec:
      hooks_.lifecycle({.what = Life::exec, .tid = record.tid, .tgid = record.tgid, .former_tid = record.former_tid});
      break;
    case What::exit:
      managed_.erase(record.tid);
      if (const auto relay = relays_.thread(record.tid)) relays_.forget(*relay);
      hooks_.lifecycle({.what = Life::exit, .tid = record.tid, .tgid = record.tgid});
      break;
    case What::left:
      left(record, out);
      break;
    case What::blocked:
    case What::woken: {
      if (relays_.knows(record.tid)) {
        take_of_relay(record, out);
        break;
      }
      const auto found = watched_.find(record.tid);
      if (found == watched_.end() || found->second->fresh || !tracer_->follows()) break;
      Watched& w = *found->second;
      if (record.what == What::blocked) {
        // A block that fell between the watch and the look was told already.
        if (record.time <= w.began) break;
        w.unsure = false;
        count_wait(w, record);
        if (!(record.doubtful && runs(record.tid)))
          block(w, record.time, record.call,
                site_of(w.wait.member, record.call, record.args, record.compat, record.sleep), out);
      } else if (record.blocked_at >= w.began || (record.blocked_at == Time{} && record.time >= w.began)) {
        // Otherwise it would be of an older wait; one that began before the thread was managed has no beginning.
        w.unsure = false;
        if (record.silent) tell_past_wait(w, record.blocked_at, out);
        wake(w, record.time, &record.waker, out);
      }
      break;
    }
  }
}

// A silent wait that somebody else has ended than who was expected. What it waited in is in the slot, if it has not
// blocked again.
void BpfObserver::tell_past_wait(Watched& w, Time blocked_at, std::vector<Event>& out) {
  const auto slot = tracer_->slot(w.wait.member.id.tid);
  if (slot && slot->blocked_at == blocked_at && blocked_at > w.began) block_in(w, *slot, out);
}

// Whoever waited for it in silence, and whoever waited for those.
void BpfObserver::left(const sys::BpfRecord& record, std::vector<Event>& out) {
  pid_t tid = record.waiter;
  for (int depth = 0; tid != 0 && depth < longest_chain; ++depth) {
    if (const auto found = watched_.find(tid); found != watched_.end() && !found->second->fresh) {
      inverted(*found->second, record.time);
      read_slot(*found->second, record.time, out);
    }
    const auto slot = tracer_->slot(tid);
    tid = slot ? slot->awaited_by : 0;
  }
}

void BpfObserver::look_for_losses(Time now, std::vector<Event>& out) {
  const std::uint64_t losses = tracer_->lost() + tracer_->without_slot();
  if (losses == losses_) return;
  hooks_.lost(losses - losses_);
  losses_ = losses;
  for (const auto& [tid, w] : watched_) read_slot(*w, now, out);
}

void BpfObserver::look(ThreadId thread, Time now, std::vector<Event>& out) {
  if (Watched* w = find(thread); w != nullptr && !w->fresh) read_slot(*w, now, out);
}

void BpfObserver::read_slot(Watched& w, Time now, std::vector<Event>& out) {
  if (!tracer_->follows()) return;
  const pid_t tid = w.wait.member.id.tid;
  auto slot = tracer_->slot(tid);
  for (int tries = 0; slot && slot->silent; ++tries) {  // it may have begun another silent wait meanwhile
    if (tries == max_tries) return;
    tracer_->report_wake(tid);
    slot = tracer_->slot(tid);
  }
  if (!slot) return;  // gone, or never still: it counts as runnable
  switch (slot->phase) {
    case sys::ThreadSlot::Phase::unknown:
      if (w.wait.blocked && w.unsure && runs(tid))
        wake_by_last(w, now, *slot, out);
      else
        read_procfs(w, now, out);
      break;
    case sys::ThreadSlot::Phase::running:
    case sys::ThreadSlot::Phase::woken:
      if (w.wait.blocked) wake(w, slot->woken_at, &slot->waker, out);
      if (w.unsure) w.began = std::max(w.began, slot->blocked_at);  // a record of it is of an earlier watch
      break;
    case sys::ThreadSlot::Phase::blocked:
      if ((slot->doubtful || w.unsure) && runs(tid)) {
        wake_by_last(w, now, *slot, out);
        w.began = std::max(w.began, slot->blocked_at);  // its slot says blocked until it has a CPU
      } else if (slot->blocked_at > w.began) {
        block_in(w, *slot, out);
      }
      break;
  }
}

// It runs, though its slot, as it was read, does not say so: whoever woke it last did, perhaps since then.
void BpfObserver::wake_by_last(Watched& w, Time now, const sys::ThreadSlot& read, std::vector<Event>& out) {
  const auto slot = tracer_->slot(w.wait.member.id.tid);
  wake(w, now, slot ? &slot->waker : &read.waker, out);
}

bool BpfObserver::runs(pid_t tid) const {
  // One that is being woken has no state there but R; /proc/TID/syscall would still say that it waits.
  const auto stat = procfs_.stat(tid);
  return !stat || std::string_view("RXxZ").find(stat->state) != std::string_view::npos;
}

// It has slept since before it was managed, or followed. One that was stopped in a call waits for nobody, though it
// says that it is in the call still.
void BpfObserver::read_procfs(Watched& w, Time now, std::vector<Event>& out) {
  const pid_t tid = w.wait.member.id.tid;
  const auto state = procfs_.syscall(tid);
  if (!state || state->running || w.wait.blocked) return;
  const std::int32_t call = state->in_call ? state->nr : -1;
  const auto stat = procfs_.stat(tid);
  const bool stopped = stat && (stat->state == 'T' || stat->state == 't');
  block(w, now, call, site_of(w.wait.member, call, state->args, state->compat, stopped ? sleeps_stopped : 0), out);
  w.began = Time{};  // as its slot has it: the next is another wait, however soon
}

void BpfObserver::block_in(Watched& w, const sys::ThreadSlot& slot, std::vector<Event>& out) {
  block(w, slot.blocked_at, slot.call, site_of(w.wait.member, slot.call, slot.args, slot.compat, slot.sleep), out);
}

void BpfObserver::block(Watched& w, Time began, std::int32_t call, const CallSite& site, std::vector<Event>& out) {
  w.call = call;
  w.began = began;
  w.told = std::max(began, w.told);
  teller_.wake(w.wait, w.told, out);  // of the end of the last wait nothing was heard
  const std::size_t first = out.size();
  teller_.block(w.wait, w.told, site, out);
  name_kin(w, out, first);
  if (w.sender) name_sent_to(w, out);
  w.passed_to.clear();
  name_passed_to(w, out);
  if (w.wait.awaited.empty() && site.nr >= 0 && w.kernel_thread.valid() && w.kernel_call == site.nr) {
    // As far as can be told: the same call was ended by this one the last time.
    w.wait.awaited = {kernel_work_of(w.kernel_thread)};
    std::get<Blocked>(out.back()).awaited = w.wait.awaited;
  }
  expect_a_name(w);
}

// A wait in a call on a file, or in a page fault, is mostly one for a device, and short. One that lasts may be for a
// lock of the kernel's, or for a FUSE daemon: the worker looks.
void BpfObserver::expect_a_name(const Watched& w) {
  if (!w.wait.awaited.empty() && w.wait.awaited.front().kind != ResourceKind::kernel_work &&
      w.wait.awaited.front().kind != ResourceKind::unknown)
    return;
  switch (call_entry(w.wait.site.nr).kind) {
    case CallKind::transfer:
    case CallKind::copy:
    case CallKind::disk:
    case CallKind::unknown:
      nameless_.push_back({w.told + names_nobody, w.wait.member.id, w.wait.generation});
      break;
    default:
      break;
  }
}

void BpfObserver::ask_for_names(Time now) {
  for (auto* waits : {&nameless_, &nameless_again_}) {
    while (!waits->empty()) {
      const Nameless one = waits->front();
      const Watched* w = find(one.thread);
      const bool waits_on = w != nullptr && w->wait.blocked && w->wait.generation == one.generation;
      if (waits_on && one.due > now) break;
      waits->pop_front();
      if (!waits_on) continue;
      if (now - w->nobody_found < nobody_rest)
        nameless_again_.push_back({now + nobody_rest, one.thread, one.generation});
      else
        hooks_.ask({.thread = one.thread, .site = w->wait.site, .generation = one.generation});
    }
  }
}

// Names the thread that this one woke last, and probably waits for now. Their slots tell; asked once a kind of wait.
void BpfObserver::name_sent_to(Watched& w, std::vector<Event>& out) {
  if (w.wait.awaited.empty() || managed_.size() > max_asked) return;
  // A lock of the kernel's is no answer to a message; what a FUSE daemon gives is.
  if (w.wait.awaited.front().kind == ResourceKind::kernel && !is_fuse_files(w.wait.awaited.front())) return;
  const bool same = w.hinted_call == w.wait.site.nr && w.hinted_arg == w.wait.site.args[0];
  if (same && (w.hint_missed == Time::min() || w.wait.since - w.hint_missed < hint_rest)) return;
  w.hinted_call = w.wait.site.nr;
  w.hinted_arg = w.wait.site.args[0];
  w.hint_missed = w.wait.since;
  const pid_t own = w.wait.member.id.tid;
  if (const auto self = tracer_->glance(own); self && self->wakes <= w.hinted_order) return;  // none since
  ThreadId woken;
  std::uint32_t last = 0;
  for (const auto& [tid, id] : managed_) {
    if (tid == own) continue;
    if (const auto last_woken = tracer_->glance(tid); !last_woken || last_woken->waker != own) continue;
    const auto slot = tracer_->slot(tid);
    if (!slot || slot->waker.tid != own || slot->order <= last) continue;
    woken = id;
    last = slot->order;
  }
  // What was sent before an earlier wait was answered then: whoever got it need not be who has this one's.
  if (!woken.valid() || last <= w.hinted_order) return;
  w.hinted_order = last;
  w.hint_missed = Time::min();
  for (const Resource& resource : w.wait.awaited)
    out.emplace_back(
        Accessed{.time = w.wait.since, .thread = woken, .resource = resource, .evidence = Evidence::sent_to});
}

void BpfObserver::wake(Watched& w, Time time, const sys::Waker* waker, std::vector<Event>& out) {
  if (!w.wait.blocked) return;
  if (waker->kernel_thread && waker->tid != 0) note_kernel_thread(w, waker->tid);
  w.ended = {.distinct = distinct(w.wait), .call = w.call, .arg = w.wait.site.args[0]};
  w.told = std::max(time, w.told);
  if (!w.wait.awaited.empty() && w.wait.awaited.front().kind == ResourceKind::kernel)
    resolver_.ended(w.wait.awaited.front(), w.told - w.wait.since);
  teller_.wake(w.wait, w.told, out);
  credit(w, *waker, std::get<Woken>(out.back()));
  if (const Woken& woken = std::get<Woken>(out.back()); woken.unrelated && woken.by) resolver_.doubt(w.wait.site);
  w.ended_at = w.told;
  learn_sender(w, *waker);
}

void BpfObserver::resolve_again(ThreadId thread) {
  if (const Watched* w = find(thread)) teller_.resolve_again(w->wait);
}

void BpfObserver::answer(const WaitAnswer& answer, std::vector<Event>& out) {
  Watched* w = find(answer.question.thread);
  if (w == nullptr) return;
  const std::size_t first = out.size();
  const std::vector<Resource>& found = answer.wait.awaited;
  if (found.empty() || found.front().kind == ResourceKind::unknown) w->nobody_found = std::chrono::steady_clock::now();
  teller_.answer(w->wait, answer, out);
  name_kin(*w, out, first);
  if (out.size() != first && w->sender && w->wait.blocked) name_sent_to(*w, out);
  if (out.size() != first) name_passed_to(*w, out);
}

void BpfObserver::answer(const AccessAnswer& answer, std::vector<Event>& out) {
  for (const Resource& resource : answer.access.accessed)
    out.emplace_back(Accessed{.time = answer.question.time,
                              .thread = answer.question.thread,
                              .resource = resource,
                              .evidence = Evidence::woke});
}

Costs BpfObserver::costs() const {
  return {.watched = watched_.size(), .wakeups = wakeups_, .polls = 0, .method = Costs::Method::bpf};
}

}  // namespace swapd::observe
