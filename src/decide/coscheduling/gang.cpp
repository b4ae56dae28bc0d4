#include "decide/coscheduling/gang.h"

#include <algorithm>
#include <utility>

namespace swapd::decide {

namespace {
constexpr double all_of_it = 0.9;  // of the CPUs, as exactly as shares are known
}  // namespace

// Cost of a slot to the job's credit: each of its threads has a CPU all the time, and is due its share of that.
Duration Gangs::cost(const Gang& gang) const {
  const double more = std::max(static_cast<double>(gang.ledger.runnable()) - gang.ledger.due(), 0.05);
  return Duration(static_cast<Duration::rep>(static_cast<double>(config_.slot.count()) * more));
}

// Credit with which its next slot begins. On average a slot begins when half of it is owed and ends when half of it is
// a debt; one that is called may begin early. A message that comes just after a slot is from a mate whose own is about
// to end, and waits; but if none came in the whole slot, the mate begins its slots when this job's end, and the two
// would miss each other for ever.
Duration Gangs::wanted(const Gang& gang) const {
  const Duration all = cost(gang);
  if (!gang.by_messages) return all / 2;
  const bool together = gang.in_vain || gang.ledger.credit() - gang.credit_after >= all / 4;
  if (gang.called_now && together) return all - 2 * config_.slot;  // within the ledger's bound
  return gang.called ? -all / 2 : all;
}

void Gangs::call(const MessageCalled& message) {
  for (auto& [id, gang] : gangs_) {
    if (!gang.by_messages || gang.slot_until || !std::ranges::binary_search(gang.threads, message.thread)) continue;
    gang.called = true;
    gang.called_now = !message.waits;
    gang.heard = gang.heard || !message.waits;
    gang.in_vain = message.messages <= 1;  // the one that began the slot
    gang.look_at = message.time;
  }
}

std::vector<ThreadId> Gangs::callable() const {
  std::vector<ThreadId> out;
  for (const auto& [id, gang] : gangs_)
    if (gang.by_messages && !gang.slot_until && !gang.heard)
      out.insert(out.end(), gang.threads.begin(), gang.threads.end());
  return out;
}

void Gangs::set(JobId id, const std::vector<Thread>& threads, Time now, std::uint64_t room) {
  const auto [at, is_new] = gangs_.try_emplace(id);
  Gang& gang = at->second;
  std::vector<ThreadId> before = std::move(gang.threads);
  gang.room = room;
  gang.threads.clear();
  gang.cpus.clear();
  for (const Thread& one : threads) {
    gang.threads.push_back(one.thread);
    gang.cpus.push_back(one.cpu);
    gang.ledger.set_share(one.thread, one.share);
  }
  std::ranges::sort(gang.threads);
  std::ranges::sort(gang.cpus);
  gang.cpus.erase(std::unique(gang.cpus.begin(), gang.cpus.end()), gang.cpus.end());
  for (const ThreadId thread : before)
    if (!std::ranges::binary_search(gang.threads, thread)) gang.ledger.forget(thread);
  gang.ledger.set_bound(2 * config_.slot * static_cast<int>(std::max<std::size_t>(threads.size(), 1)));
  if (is_new || before != gang.threads) gang.look_at = now;
}

bool Gangs::forget(ThreadId thread) {
  bool was_in_one = false;
  for (auto& [id, gang] : gangs_) {
    if (std::erase(gang.threads, thread) == 0) continue;
    was_in_one = true;
    gang.ledger.forget(thread);
  }
  if (was_in_one) std::erase_if(gangs_, [](const auto& one) { return one.second.threads.empty(); });
  return was_in_one;
}

void Gangs::settle(ThreadId thread, Duration cpu, bool runnable, Time now) {
  for (auto& [id, gang] : gangs_)
    if (std::ranges::binary_search(gang.threads, thread)) gang.ledger.settle(thread, cpu, runnable, now);
}

bool Gangs::end_slots(Time now, std::vector<ThreadId>& measure) {
  for (auto& [id, gang] : gangs_) {
    const bool over = gang.slot_until && now >= *gang.slot_until;
    if (over) {
      gang.slot_until.reset();
      gang.ended = now;
    }
    gang.over = gang.over || over;
    if (over || (!gang.slot_until && now >= gang.look_at))
      measure.insert(measure.end(), gang.threads.begin(), gang.threads.end());
  }
  return !measure.empty();
}

std::optional<bool> Gangs::in_one_room(const Gang& one, const Gang& other) {
  if (one.room == 0 || other.room == 0) return std::nullopt;
  return one.room == other.room;
}

bool Gangs::share_cpus(const Gang& one, const Gang& other) {
  if (const auto known = in_one_room(one, other)) return *known;
  return std::ranges::any_of(one.cpus, [&](int cpu) { return std::ranges::binary_search(other.cpus, cpu); });
}

bool Gangs::may_begin(const Gang& gang) const {
  return std::ranges::none_of(gangs_,
                              [&](const auto& one) { return one.second.slot_until && share_cpus(one.second, gang); });
}

bool Gangs::on_its_cpus(const Gang& gang, const Gang& other) const {
  return in_one_room(gang, other).value_or(other.cpus == gang.cpus);
}

// If the jobs' shares are all there is, no other thread wants the CPUs between two slots: the slots follow on each
// other, and credit says only whose turn it is.
bool Gangs::only_gangs_compete(const Gang& gang) const {
  double due = 0;
  for (const auto& [id, other] : gangs_)
    if (!other.rests && !other.threads.empty() && on_its_cpus(gang, other))
      due += other.ledger.due() / static_cast<double>(other.threads.size());
  return due >= all_of_it;
}

Time Gangs::pause_until(const Gang& gang) const {
  Time last{};
  for (const auto& [id, other] : gangs_)
    if (on_its_cpus(gang, other)) last = std::max(last, other.ended);
  return last + config_.pause;
}

bool Gangs::begin_slots(Time now) {
  std::vector<Gang*> due;
  bool changed = false;
  for (auto& [id, gang] : gangs_) {
    if (gang.slot_until || now < gang.look_at) continue;
    const bool rested = std::exchange(gang.rests, gang.ledger.runnable() == 0);
    changed = changed || rested != gang.rests;
    if (std::exchange(gang.over, false)) gang.credit_after = gang.ledger.credit();
    auto wait = gang.rests ? std::nullopt : gang.ledger.until(wanted(gang));
    if (std::exchange(gang.called_now, false) && wait && *wait > Duration::zero()) {
      wait = gang.ledger.until(wanted(gang));  // the message waits
      ++gang.refused.debt;
    }
    const bool only_gangs = wait && only_gangs_compete(gang);
    if (only_gangs && now < pause_until(gang))
      gang.look_at = pause_until(gang);
    else if (wait && (*wait <= Duration::zero() || only_gangs))
      due.push_back(&gang);
    else
      gang.look_at = now + (wait ? std::max<Duration>(*wait, std::chrono::microseconds(200)) : config_.look_again);
  }
  std::ranges::stable_sort(due, std::ranges::greater(), [](const Gang* gang) { return gang->ledger.credit(); });
  for (Gang* gang : due) {
    if (!may_begin(*gang)) {
      ++gang->refused.busy;
      // When the job that has the CPUs is done.
      Time soonest = now + config_.slot;
      for (const auto& [id, other] : gangs_)
        if (other.slot_until) soonest = std::min(soonest, *other.slot_until);
      gang->look_at = soonest;
      continue;
    }
    gang->slot_until = now + (only_gangs_compete(*gang) ? config_.slot_among_gangs : config_.slot);
    gang->called = gang->heard = false;
    ++gang->slots;
    changed = true;
  }
  return changed;
}

std::optional<Time> Gangs::next() const {
  std::optional<Time> next;
  for (const auto& [id, gang] : gangs_)
    next = std::min(gang.slot_until.value_or(gang.look_at), next.value_or(Time::max()));
  return next;
}

}  // namespace swapd::decide
