#include "shaping/mmap_throttler.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "shaping/device_estimate.h"
#include "sys/process/self_process.h"

namespace swapd::daemon {
namespace {

using decide::Device;
using decide::Tokens;

constexpr std::chrono::milliseconds look_every{5}, look_closely{1}, seek_every{100};
constexpr Duration alert_when_new = std::chrono::milliseconds(500), alert_after_freeze = std::chrono::milliseconds(100);
constexpr int max_share = 10;                               // close looks take one part in so many of a CPU
constexpr Duration not_before = look_every - look_closely;  // a look that is not close, for a round that comes early
constexpr Duration idle_every = std::chrono::milliseconds(20);  // that has not moved anything for a second
constexpr std::size_t threads_a_look = 64;
constexpr Duration list_every = std::chrono::milliseconds(50);  // who is frozen
constexpr Duration min_freeze = std::chrono::milliseconds(2);   // less is owed until the next look
constexpr Duration vouched = std::chrono::milliseconds(200);    // to the guard, for a look before that
constexpr int often_sought = 10;                                // that it has a gate
constexpr Duration soon = std::chrono::milliseconds(5);
constexpr Duration believed = std::chrono::seconds(1), again_after = std::chrono::seconds(10);

Tokens part_of(std::uint64_t before, std::uint64_t now, double share) {
  if (now <= before) return 0;
  const auto grown = std::min<std::uint64_t>(now - before, TokenBucket::max_burst);
  return static_cast<Tokens>(share * static_cast<double>(grown));
}

bool has_moved(const sys::IoCounters& before, const sys::IoCounters& now) {
  return now.read_bytes != before.read_bytes || now.written_bytes != before.written_bytes;
}

}  // namespace

MmapThrottler::MmapThrottler(const ShapingParts& parts, Options options)
    : parts_(parts),
      ask_of_gate_(std::move(options.has_gate)),
      groups_(options.memory, {.proc_root = parts.procfs.root(),
                               .cgroups = std::move(options.cgroups),
                               .state_dir = std::move(options.state_dir)}),
      targets_(parts.procfs, parts.disks),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

MmapThrottler::~MmapThrottler() {
  thread_.request_stop();
  look_now();
  thread_.join();
  for (auto& [tgid, process] : processes_) thaw(tgid, process);
  for (auto& [tgid, process] : processes_) end(tgid, process);
}

void MmapThrottler::look_now() const {
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

// A thread that has come to its gate is settled there once more when it has ended.
void MmapThrottler::forget_thread(pid_t tid) const { parts_.ledger->entries().forget_paid(tid); }

void MmapThrottler::write_off(Process& process) const { parts_.ledger->write_off(process.payer); }

// It is not to be frozen any more.
void MmapThrottler::end(pid_t tgid, Process& process) {
  thaw(tgid, process);
  write_off(process);
  for (const auto& [tid, thread] : process.threads) forget_thread(tid);
  groups_.leave(tgid, parts_.clock.now());
}

void MmapThrottler::run(const std::stop_token& stop) {
  sys::name_thread("swapd-pages");
  (void)sys::set_thread_nice(0, -20);
  while (!stop.stop_requested()) {
    const Time begun = parts_.clock.now();
    round();
    const Time now = parts_.clock.now();
    const Duration closely = std::clamp<Duration>(max_share * (now - begun), look_closely, look_every);
    const Duration next = members_.empty() ? seek_every : now < alert_until_ ? closely : look_every;
    pollfd wait{wake_.get(), POLLIN, 0};
    (void)::poll(&wait, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(next).count()));
    std::uint64_t rung = 0;
    (void)!::read(wake_.get(), &rung, sizeof rung);
  }
}

void MmapThrottler::round() {
  if (const std::uint64_t generation = parts_.ledger.generation(); generation != generation_) {
    generation_ = generation;
    members_ = parts_.ledger->classes().paying_at_once();
  }
  for (auto& [tgid, process] : processes_)
    if (!members_.contains(tgid)) thaw(tgid, process);
  for (auto at = processes_.begin(); at != processes_.end();) {
    if (members_.contains(at->first)) {
      ++at;
      continue;
    }
    end(at->first, at->second);
    at = processes_.erase(at);
  }
  // Frozen processes first: what ends that shall not wait for the others.
  for (auto& [tgid, process] : processes_) {
    const decide::ClassViewPtr& view = members_.at(tgid);
    if (process.view && process.view->name != view->name) write_off(process);  // what it owes stays with that class
    process.view = view;
    if (groups_.is_frozen(tgid)) look_at_frozen(tgid, process);
  }
  groups_.tidy(parts_.clock.now());
  for (const auto& [tgid, view] : members_) {
    Process& process = processes_[tgid];
    process.view = view;
    process.payer.tgid = tgid;
    if (!groups_.is_frozen(tgid) && has_gate(tgid, process)) look(tgid, process);
  }
}

void MmapThrottler::look_closely_at(Process& process, Duration duration) {
  process.alert_until = std::max(process.alert_until, parts_.clock.now() + duration);
  alert_until_ = std::max(alert_until_, process.alert_until);
}

bool MmapThrottler::has_gate(pid_t tgid, Process& process) {
  const Time now = parts_.clock.now();
  const Duration again = process.gate_seeks < often_sought ? soon : believed;  // it may have just been started
  if (process.has_gate || now - process.gate_sought < again) return process.has_gate;
  process.gate_sought = now;
  ++process.gate_seeks;
  process.has_gate = ask_of_gate_(tgid);
  if (process.has_gate) look_closely_at(process, alert_when_new);
  return process.has_gate;
}

decide::Ledger::Owed MmapThrottler::owed(Process& process, Time now) const {
  return parts_.ledger->owed(process.payer, now);
}

// A signal, also one that it blocks, because the thread that would look for it stands still too; a debugger, who could
// do nothing with it; an important thread that waits for it. A frozen process does nothing about that by itself.
MmapThrottler::Interruptions MmapThrottler::interruptions(const Process& process,
                                                          const std::vector<pid_t>& threads) const {
  Interruptions out;
  for (const pid_t tid : threads)
    if (const auto found = parts_.procfs.interruption(tid)) {
      out.signals |= found->pending;
      out.any = out.any || found->signals != 0 || found->tracer != 0;
    }
  if (process.view->limits.favoured_wait) return out;
  const auto ledger = parts_.ledger.lock();
  out.any = out.any || std::ranges::any_of(threads, [&](pid_t tid) { return ledger->held().is_favoured(tid); });
  return out;
}

bool MmapThrottler::goes_on(const Process& process, const std::vector<pid_t>& threads) const {
  const Interruptions found = interruptions(process, threads);
  return found.any || (found.signals & ~process.signals) != 0;
}

void MmapThrottler::look_at_frozen(pid_t tgid, Process& process) {
  const Time now = parts_.clock.now();
  // A signal to the process shows at each of its threads; all of them are looked at now and then.
  if (owed(process, now).due <= now || goes_on(process, {tgid})) return thaw(tgid, process);
  if (now - process.listed >= list_every) {
    list_frozen(tgid, process, now);
    if (goes_on(process, process.frozen)) return thaw(tgid, process);
    if (!groups_.keep(tgid)) {  // it was moved elsewhere
      thaw(tgid, process);
      groups_.leave(tgid, now);
      process.owes = true;
      return;
    }
  }
  if (groups_.vouch(tgid, now + vouched)) {
    process.charged = now;
    return;
  }
  // The guard has ended the freeze: what it has moved since is charged to no process, but what it owed it owes.
  thaw(tgid, process);
  process.counted.reset();
  process.threads.clear();
  process.owes = true;
}

void MmapThrottler::look(pid_t tgid, Process& process) {
  const Time now = parts_.clock.now();
  if (now < process.stay_away || now < process.next_look) return;
  const bool moves = charge(tgid, process, now);
  if (now >= process.alert_until)
    process.next_look =
        std::max(process.next_look, now + (now - process.last_moved > believed ? idle_every : not_before));
  process.owes = moves || process.owes;
  if (!process.owes && now - process.last_frozen > again_after) groups_.leave(tgid, now);
  if (!process.owes) return;
  if (const auto stat = parts_.procfs.stat(tgid); stat && stat->state == 'T') return;  // it stands still as it is
  if (const auto owed = this->owed(process, now); owed.due - now >= min_freeze || owed.rest > 0) {
    const auto threads = parts_.procfs.threads(tgid);
    const auto found = threads ? interruptions(process, *threads) : Interruptions{.signals = 0, .any = true};
    process.signals = found.signals;
    if (!found.any) return freeze(tgid, process);
  }
  process.owes = false;
}

// True: it has moved pages.
bool MmapThrottler::charge(pid_t tgid, Process& process, Time now) {
  const auto all = sys::process_io(parts_.procfs.root(), tgid);
  if (!all) return false;
  // While swapd did not look, it had no limit: what it moved then is charged to no process.
  const Duration since = now - std::exchange(process.charged, now);
  const double share = since <= vouched ? 1 : std::chrono::duration<double>(vouched) / since;
  if (process.counted && !has_moved(*process.counted, *all)) return false;
  process.last_moved = now;  // by calls too: it may move pages between two looks at them
  process.counted = *all;
  const auto threads = parts_.procfs.threads(tgid);
  if (!threads) return false;
  process.next_look = now + std::min<Duration>(look_every * (threads->size() / threads_a_look), vouched / 2);
  std::erase_if(process.threads, [&](const auto& entry) {
    const bool gone = std::ranges::find(*threads, entry.first) == threads->end();
    if (gone) forget_thread(entry.first);
    return gone;
  });
  bool any = false;
  const bool first = process.threads.empty();
  for (const pid_t tid : *threads) {
    auto known = process.threads.find(tid);
    if (known == process.threads.end()) {
      auto io = sys::ThreadIo::open(parts_.procfs.root(), tid);
      if (!io) continue;
      known = process.threads.emplace(tid, Thread{.io = std::move(io).value(), .counted = {}}).first;
      known->second.entered = first ? ~std::uint64_t{0} : 0;  // first: what it does at this moment is not known
    }
    any = charge(tgid, process, known->second, tid, share, now) || any;
  }
  return any;
}

bool MmapThrottler::charge(pid_t tgid, Process& process, Thread& thread, pid_t tid, double share, Time now) {
  const auto counted = thread.io.read();
  if (!counted) {  // it has ended
    process.threads.erase(tid);
    forget_thread(tid);
    return false;
  }
  // Read after the counters: where it is the same as before, all that they have grown by lies outside of calls.
  const decide::GateEntry entered = parts_.ledger->entries().find(tid);
  const bool came_before = std::exchange(thread.entered, entered.count) == entered.count;  // than the counters
  if (!came_before) thread.outside = false;
  sys::IoCounters before = std::exchange(thread.counted, *counted);
  if (!thread.outside) {
    const auto state = parts_.procfs.syscall(tid);
    const bool is_over = entered.count > 0 && counted->calls > entered.counted.calls;  // its last call
    thread.outside = is_over || (came_before && state && (state->running ? entered.count == 0 : !state->in_call));
    if (process.view->limits.mode != decide::ShapeMode::device) return false;
    // Whatever call it is in, the disk has moved that.
    if (entered.count == 0) thread.outside = came_before;
    if (!thread.outside) return false;
    if (entered.count > 0) before = entered.charged();
  }
  decide::Ledger::PagesMoved moved{.read = part_of(before.read_bytes, counted->read_bytes, share),
                                   .written = part_of(before.written_bytes, counted->written_bytes, share)};
  if (moved.read == 0 && moved.written == 0) return false;
  seek_disks(tgid, process, now);
  moved.all_read = static_cast<std::uint64_t>(part_of(before.read_bytes, counted->read_bytes, 1));
  moved.all_written = static_cast<std::uint64_t>(part_of(before.written_bytes, counted->written_bytes, 1));
  moved.paged = max_paged(thread, tid);
  moved.pages_disk = process.disk;
  moved.tree_disk = process.tree;
  using Charged = decide::Ledger::Charged;
  const Charged charged = parts_.ledger->charge_pages(process.payer, *process.view, tid, entered.count, moved, now);
  if (charged == Charged::at_gate) thread.outside = false;
  return charged == Charged::charged;
}

// Pages come by faults.
Tokens MmapThrottler::max_paged(Thread& thread, pid_t tid) const {
  const auto stat = parts_.procfs.stat(tid);
  if (!stat) return 0;
  const std::uint64_t before = std::exchange(thread.faults, stat->major_faults);
  return static_cast<Tokens>(stat->major_faults - std::min(before, stat->major_faults)) * read_by_fault;
}

void MmapThrottler::seek_disks(pid_t tgid, Process& process, Time now) {
  if (process.met == Time{}) process.met = now;
  const Duration again = now - process.met < believed ? soon : believed;  // as it starts it becomes another, and moves
  if (now - process.disk_sought < again) return;
  process.disk_sought = now;
  const decide::ClassLimits& limits = process.view->limits;
  process.disk = disk_of_mappings(parts_.procfs, parts_.disks, tgid, limits)
                     .value_or(process.disk.number != 0 ? process.disk : Device{Device::Kind::disk, 0});
  process.tree = disk_of_directories(parts_.procfs, parts_.disks, targets_, tgid, limits, now).value_or(process.disk);
}

void MmapThrottler::list_frozen(pid_t tgid, Process& process, Time now) {
  process.listed = now;
  auto threads = parts_.procfs.threads(tgid).value_or({});
  const auto ledger = parts_.ledger.lock();
  ledger->held().thaw(process.frozen);
  process.frozen = std::move(threads);
  ledger->held().freeze(process.frozen, {.since = process.frozen_since,
                                         .favoured_wait = process.view->limits.favoured_wait,
                                         .debts = process.payer.debts});
}

void MmapThrottler::freeze(pid_t tgid, Process& process) {
  if (groups_.is_full()) return;
  const Time now = parts_.clock.now();
  const Result<bool> entered = groups_.enter(tgid, now);
  if (!entered) return give_up(tgid, process, entered.error());
  if (!*entered) return;
  process.frozen_since = now;
  list_frozen(tgid, process, now);
  const Result<bool> frozen = groups_.freeze(tgid, now + vouched);
  // A stop that came just before: it stands still for that, and frozen it would not be seen to.
  if (frozen && *frozen && !parts_.procfs.stopped_by_signal(tgid)) return;
  thaw(tgid, process);
  if (!frozen) give_up(tgid, process, frozen.error());
}

void MmapThrottler::give_up(pid_t tgid, Process& process, const Error& error) {
  const Time now = parts_.clock.now();
  groups_.leave(tgid, now);
  process.stay_away = now + again_after;
  process.counted.reset();
  process.threads.clear();
  if (!error.gone() && !std::exchange(warned_, true))
    spdlog::warn("process {} cannot be frozen ({}); it pays for its mapped files at its next call", tgid, error.text());
}

void MmapThrottler::thaw(pid_t tgid, Process& process) {
  const bool was_frozen = groups_.is_frozen(tgid) || !process.frozen.empty();
  groups_.thaw(tgid);
  if (!was_frozen) return;
  process.owes = false;
  process.last_frozen = parts_.clock.now();
  look_closely_at(process, alert_after_freeze);
  parts_.ledger->end_freeze(process.payer, process.frozen, process.last_frozen - process.frozen_since);
  process.frozen.clear();
}

}  // namespace swapd::daemon
