#include "decide/shaping/ledger.h"

#include <algorithm>
#include <utility>

namespace swapd::decide {
namespace {

constexpr Duration max_patience = std::chrono::seconds(2);

Tokens in_tokens(std::uint64_t count) {
  return static_cast<Tokens>(std::min<std::uint64_t>(count, TokenBucket::max_burst));
}

}  // namespace

Ledger::Verdict Ledger::settle_and_reserve(Caller& caller, const ClassViewPtr& view, CallerMoved moved,
                                           const WantedCall* want, Time now) {
  if (moved.another_thread) cancel_last(caller, now);
  if (view->limits.freezes) {
    entries_.note(caller.tid, moved.in_all, caller.gate);
    entries_.take_paid(caller.tid, moved.disk, moved.anew);
  }
  if (caller.view && caller.view->name != view->name) drop_debts(caller);  // they stay with the class that it was in
  settle(caller, moved, *view, Settles::all, now);
  settle_workers(caller, moved, *view, now);
  caller.view = view;
  return want != nullptr ? reserve(caller, *want, now) : Verdict{.due = now};
}

void Ledger::settle_last(Caller& caller, CallerMoved moved, Settles what, Time now) {
  if (moved.another_thread || (moved.has_ended && caller.call && caller.call->held)) cancel_last(caller, now);
  if (caller.view->limits.freezes) entries_.note(caller.tid, moved.in_all, caller.gate);
  entries_.take_paid(caller.tid, moved.disk, moved.anew);
  settle(caller, moved, *caller.view, what, now);
}

// The call was not made.
void Ledger::cancel_last(Caller& caller, Time now) {
  if (!caller.call) return;
  if (!std::exchange(caller.call->cancelled, true)) shaping_.cancel(caller.call->reservation, now);
  caller.call.reset();
}

void Ledger::settle(Caller& caller, const CallerMoved& moved, const ClassView& view, Settles what, Time now) {
  CallShare share;
  if (caller.call) {
    PendingCall& call = *caller.call;
    note_signals(caller, now);
    call.settled = true;
    if (caller.moves) {
      share = share_of_call(caller, view.limits.mode, moved);
      share.moved.waited = call.waited;
      share.moved.calls = call.calls;
      if (!call.cancelled) caller.debts->add(shaping_.settle(call.reservation, share.moved, now), false);
    } else if (call.waited > Duration::zero()) {  // it waited for its thread's debts alone
      shaping_.waited(caller.charged, call.waited);
    }
  }
  if (what == Settles::all) settle_pages(caller, moved, share, view, now);
  if (caller.call) caller.unused = std::move(caller.call);
  caller.call.reset();
  caller.moves = false;
  caller.settled = now;
}

// Bytes that were moved without a call are paid by the thread before its next call: pages of mapped files before any,
// the rest before a call that moves something.
void Ledger::settle_pages(Caller& caller, const CallerMoved& moved, const CallShare& call, const ClassView& view,
                          Time now) {
  const MovedWithoutCall pages = moved_without_call(caller, view.limits.mode, moved, call);
  caller.ahead = pages.ahead;
  if (pages.read > 0 || pages.written > 0) {
    const Device disk = pages.of_call ? *moved.disk_of_call : moved.pages_disk;
    const Tokens paged = std::min(pages.read, moved.paged);
    charge(caller, view, disk, IoDirection::read, paged, true, now);
    const Device& tree = pages.of_call ? disk : moved.tree_disk;
    charge(caller, view, tree, IoDirection::read, pages.read - paged, false, now);
    charge(caller, view, disk, IoDirection::write, pages.written, true, now);
  }
  if (pages.has_network) return;
  // A call that could not be seen into may have moved them.
  const Device unknown{Device::Kind::network, 0};
  charge(caller, view, unknown, IoDirection::read, in_tokens(moved.traffic.received), true, now);
  charge(caller, view, unknown, IoDirection::write, in_tokens(moved.traffic.sent), true, now);
}

// Pages of the workers are paid at once, too, if the class's are.
void Ledger::settle_workers(Caller& caller, CallerMoved& moved, const ClassView& view, Time now) {
  IoCounters sum;
  for (CallerMoved::Worker& worker : moved.workers) {
    entries_.take_paid(worker.tid, worker.disk, false);
    sum.read_bytes += worker.disk.read_bytes;
    sum.written_bytes += worker.disk.written_bytes;
  }
  charge(caller, view, moved.workers_disk, IoDirection::read, in_tokens(sum.read_bytes), true, now);
  charge(caller, view, moved.workers_disk, IoDirection::write, in_tokens(sum.written_bytes), true, now);
  charge(caller, view, moved.workers_link, IoDirection::read, in_tokens(moved.workers_traffic.received), true, now);
  charge(caller, view, moved.workers_link, IoDirection::write, in_tokens(moved.workers_traffic.sent), true, now);
}

void Ledger::charge(Caller& caller, const ClassView& view, const Device& device, IoDirection direction, Tokens bytes,
                    bool pages, Time now) {
  if (bytes <= 0) return;
  const auto index = classes_.index_of(view);
  if (!index) return;
  caller.charged = shaping_.charge(*index, device, direction, bytes, now);
  caller.debts->add(caller.charged, pages);
}

// A thread that is sent the same signals all the time would be held by nothing: they have to wait longer each time, up
// to `max_patience`, until a call of the thread has waited for its own time.
void Ledger::note_signals(Caller& caller, Time now) const {
  const PendingCall& call = *caller.call;
  if (call.signals != 0) {
    caller.disturbed.signals |= call.signals;
    caller.disturbed.patience = std::min(2 * std::max(caller.disturbed.patience, options_.slice), max_patience);
    caller.disturbed.last = now;
  } else if (call.waited >= options_.slice || now - caller.disturbed.last > 2 * caller.disturbed.patience) {
    caller.disturbed.signals = 0;
    caller.disturbed.patience = {};
  }
}

std::shared_ptr<PendingCall> Ledger::new_call(Caller& caller) {
  std::shared_ptr<PendingCall> call = std::move(caller.unused);
  if (call && call.use_count() == 1)
    *call = {};
  else
    call = std::make_shared<PendingCall>();
  call->tid = caller.tid;
  call->debts = caller.debts;
  return call;
}

Ledger::Verdict Ledger::reserve(Caller& caller, const WantedCall& want, Time now) {
  Verdict out{.due = now};
  const ClassView& view = *caller.view;
  caller.last = want;
  caller.moves = want.count > 0;
  const auto index = classes_.index_of(view);
  if (!index) return out;
  const Time paid = shaping_.advance(*caller.debts, !caller.moves, now);
  if (caller.debts->empty())
    debts_.erase(caller.tid);
  else
    debts_[caller.tid] = caller.debts;
  if (paid <= now && !caller.moves) return out;

  caller.call = new_call(caller);
  PendingCall& call = *caller.call;
  call.pages_only = !caller.moves;
  call.reservation = shaping_.reserve(*index, want.transfers.data(), want.count, now);
  for (std::size_t i = 0; i < want.count; ++i) call.asked = std::max(call.asked, want.transfers.at(i).cost);
  if (view.limits.freezes) entries_.note_costs(caller.tid, want);
  out.due = advance(call, now);
  const bool favoured = !view.limits.favoured_wait && held_.is_favoured(caller.tid);
  if (out.due > now && favoured) shaping_.postpone(call.reservation, now);
  out.waits = out.due > now && !favoured && !options_.dry_run;
  out.by_turns = call.reservation.rest() > 0 || caller.debts->rest() > 0;
  out.spares = out.due <= now && want.count == 1 && caller.debts->empty() && shaping_.spares(call.reservation, 0, now);
  if (!out.waits) return out;
  call.held = true;
  call.since = now;
  call.favoured_wait = view.limits.favoured_wait;
  held_.hold(caller.call);
  return out;
}

// Debts first: its own tokens the call takes when those are paid, so that no other call waits behind both.
Time Ledger::advance(PendingCall& call, Time now) {
  const Time paid = call.debts ? shaping_.advance(*call.debts, call.pages_only, now) : now;
  return std::max(paid, paid <= now ? shaping_.advance(call.reservation, now) : shaping_.due(call.reservation, now));
}

bool Ledger::join_last(Caller& caller, const WantedCall& want, Time now) {
  if (!caller.view || !may_join_last(caller, *caller.view, now)) return false;
  if (want.count != 1 || !want.known || want.network(0) != caller.last.network(0)) return false;
  PendingCall& last = *caller.call;
  if (last.held || last.cancelled || last.signals != 0 || last.waited != Duration::zero() || !caller.debts->empty())
    return false;
  const ClassView& view = *caller.view;
  const Transfer& transfer = want.transfers.front();
  const bool as_the_disk = want.kind.as_the_disk(view.limits.mode) && !want.network(0);
  const Tokens besides = as_the_disk ? static_cast<Tokens>(last.calls + 1) * moves_besides : 0;
  const auto index = classes_.index_of(view);
  if (!index || !shaping_.has_places_of(last.reservation, *index, transfer) ||
      !shaping_.spares(last.reservation, transfer.cost + besides, now))
    return false;
  Reservation next = shaping_.reserve(*index, &transfer, 1, now);
  if (!next.join(last.reservation)) {
    shaping_.cancel(next, now);
    return false;
  }
  last.reservation = next;
  ++last.calls;
  caller.last.asked += want.asked;
  return true;
}

void Ledger::drop_debts(const Caller& caller) {
  shaping_.write_off(*caller.debts);
  caller.debts->clear();
  const auto listed = debts_.find(caller.tid);
  if (listed != debts_.end() && listed->second == caller.debts) debts_.erase(listed);
}

void Ledger::forget(const Caller& caller) {
  entries_.forget(caller.tid, caller.gate);
  drop_debts(caller);
}

Time Ledger::due(PendingCall& call, Time now) {
  if (call.favoured_wait || !held_.is_favoured(call.tid)) return advance(call, now);
  shaping_.postpone(call.reservation, now);
  return now;
}

void Ledger::end_delay(PendingCall& call, bool made, Time now) {
  call.waited = now - call.since;
  call.held = false;
  if (made || call.settled || std::exchange(call.cancelled, true)) return;
  shaping_.cancel(call.reservation, now);
}

void Ledger::forget_delay(PendingCall& call) {
  call.held = false;
  held_.end(call);
}

Ledger::Charged Ledger::charge_pages(PagePayer& payer, const ClassView& view, pid_t tid, std::uint64_t entries,
                                     const PagesMoved& moved, Time now) {
  if (entries_.find(tid).count != entries) return Charged::at_gate;
  const auto index = classes_.index_of(view);
  if (!index) return Charged::no_class;
  const auto charge_one = [&](const Device& disk, IoDirection direction, Tokens bytes) {
    if (bytes <= 0) return;
    payer.last_charge = shaping_.charge(*index, disk, direction, bytes, now);
    payer.debts->add(payer.last_charge, true);
  };
  const Tokens pages = std::min(moved.read, moved.paged);
  charge_one(moved.pages_disk, IoDirection::read, pages);
  charge_one(moved.tree_disk, IoDirection::read, moved.read - pages);
  charge_one(moved.pages_disk, IoDirection::write, moved.written);
  entries_.add_paid(tid, moved.all_read, moved.all_written);
  return Charged::charged;
}

Ledger::Owed Ledger::owed(PagePayer& payer, Time now) {
  const Time due = shaping_.advance(*payer.debts, false, now);
  if (payer.debts->empty())
    process_debts_.erase(payer.tgid);
  else
    process_debts_[payer.tgid] = payer.debts;
  return {.due = due, .rest = payer.debts->rest()};
}

void Ledger::write_off(PagePayer& payer) {
  shaping_.write_off(*payer.debts);
  payer.debts->clear();
  process_debts_.erase(payer.tgid);
}

void Ledger::end_freeze(PagePayer& payer, std::span<const pid_t> threads, Duration lasted) {
  held_.thaw(threads);
  held_.count_freeze();
  shaping_.waited(payer.last_charge, lasted);
}

std::vector<Ledger::Debt> Ledger::debts(const std::string& name) const {
  std::vector<Debt> out;
  for (const ClassViewPtr& view : classes_.views_of(name)) {
    const auto add = [&](pid_t tid, const Debts& debts) {
      for (const auto& [device, bytes] : shaping_.owed(debts, view->index))
        if (bytes > 0) out.push_back({.tid = tid, .device = device, .bytes = bytes});
    };
    for (const auto& [tid, debts] : debts_) add(tid, *debts);
    for (const auto& [tgid, debts] : process_debts_) add(tgid, *debts);
  }
  return out;
}

}  // namespace swapd::decide
