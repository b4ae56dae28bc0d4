// The bpf observer's credits: who ended a wait, and by a call on what.
#include <algorithm>

#include "observe/bpf/bpf_observer.h"
#include "observe/resolve/compat_calls.h"
#include "observe/resolve/syscall_table.h"

namespace swapd::observe {

namespace {

bool holds(const std::vector<Resource>& resources, const Resource& one) {
  return std::ranges::find(resources, one) != resources.end();
}

bool is_set(CallKind kind) { return kind == CallKind::poll || kind == CallKind::select || kind == CallKind::epoll; }

// Who has changed a file ends the wait for changes. No call names the watch: it is the one of this wait where the call
// is about files, or where there is nothing else that it could have been.
std::optional<Resource> changed(const std::vector<Resource>& awaited, bool of_files) {
  const auto found = std::ranges::find(awaited, ResourceKind::inotify, &Resource::kind);
  if (found == awaited.end() || (!of_files && awaited.size() > 1)) return std::nullopt;
  return *found;
}

}  // namespace

// jbd2 for an fsync, a worker for a deferred completion: what `why` shows. It is lent to where a policy says so.
void BpfObserver::note_kernel_thread(Watched& w, pid_t tid) const {
  const bool nobody = w.wait.awaited.empty() || w.wait.awaited.front().kind == ResourceKind::kernel_work;
  if (!nobody || w.wait.site.nr < 0) return;
  w.kernel_call = w.wait.site.nr;
  if (w.kernel_thread.tid == tid) return;
  w.kernel_thread = procfs_.thread_id(tid).value_or(ThreadId{});
}

void BpfObserver::credit(Watched& w, const sys::Waker& waker, Woken& woken) {
  if (relays_.knows(waker.tid)) return credit_through(w, waker, woken);
  const auto by = waker.tid == 0 ? std::nullopt : hooks_.identify(waker.tid);
  if (!by) {
    woken.unrelated = true;  // time, a device, a stranger
    const std::int32_t call = waker.compat ? native_call(waker.call) : waker.call;
    woken.stranger =
        waker.tid != 0 && !waker.kernel_thread && !waker.own_softirq && call_entry(call).kind != CallKind::kill;
    return;
  }
  if (waker.kernel_thread) {  // also one that works for the kernel in a program: it ends its own work only
    const Resource own = kernel_work_of(by->id);
    woken.unrelated = !holds(w.wait.awaited, own);
    if (woken.unrelated) return;
    woken.by = by->id;
    woken.through = own;
    return;
  }
  Understood& last = w.understood;
  if (last.waker != waker.tid || last.call != waker.call || last.arg != waker.args[0] || last.awaited != w.wait.awaited)
    last = understand(w, *by, waker, woken.time);
  woken.by = by->id;
  woken.through = last.through;
  woken.unrelated = last.unrelated || (waker.own_softirq && !last.through);
}

BpfObserver::Understood BpfObserver::understand(const Watched& w, const Member& by, const sys::Waker& waker,
                                                Time time) {
  Understood out{.waker = waker.tid, .call = waker.call, .arg = waker.args[0], .awaited = w.wait.awaited};
  const CallSite site{.tid = by.id.tid,
                      .tgid = by.tgid,
                      .nr = waker.compat ? native_call(waker.call) : waker.call,
                      .args = {waker.args[0], waker.args[1]},
                      .process_start = by.process_start};
  const CallKind kind = call_entry(site.nr).kind;
  if (const auto kernel = std::ranges::find(out.awaited, ResourceKind::kernel, &Resource::kind);
      kernel != out.awaited.end()) {
    // Whichever call it was: it let the lock go, or brought the answer. A signal does neither.
    out.unrelated = kind == CallKind::kill;
    if (!out.unrelated) out.through = *kernel;
    return out;
  }
  if (kind == CallKind::kill) {
    // The receiver is the one that woke, whoever the call names. One that did not wait for a signal was interrupted.
    const auto signal = std::ranges::find(out.awaited, ResourceKind::signal, &Resource::kind);
    out.unrelated = signal == out.awaited.end();
    if (!out.unrelated) out.through = *signal;
    return out;
  }
  // Of a call whose descriptors are not among the first two arguments nothing is known.
  const Access access =
      kind == CallKind::copy && call_entry(site.nr).fd_arg >= 2 ? Access{.complete = true} : resolver_.access(site);
  for (const auto* resources : {&access.accessed, &access.released})
    for (const Resource& resource : *resources)
      if (!out.through && holds(out.awaited, resource)) out.through = resource;
  if (!out.through) out.through = changed(out.awaited, access.of_files);
  if (out.through) return out;
  if (!access.complete || kind == CallKind::futex)  // an address may be another object's by now
    hooks_.ask_access({.thread = by.id, .time = time, .site = site});
  else
    out.unrelated = access.of_files || !access.accessed.empty() || !access.released.empty();
  return out;
}

const Family& BpfObserver::family_of(Watched& w) const {
  if (!w.family) w.family = observe::family_of(procfs_, w.wait.member.tgid);
  return *w.family;
}

// Which of its siblings has ended a wait by a signal: of the next process of the family, new as it may be, nothing else
// is known.
void BpfObserver::learn_sender(Watched& w, const sys::Waker& waker) {
  if (waker.tid == 0 || waker.interrupt) return;
  const std::int32_t call = waker.compat ? native_call(waker.call) : waker.call;
  if (call_entry(call).kind != CallKind::kill) return;
  const auto by = hooks_.identify(waker.tid);
  if (!by || by->tgid == w.wait.member.tgid) return;
  const Family& family = family_of(w);
  if (!family.valid()) return;
  // By its call: what a short wait was for may not be known yet.
  const CallKind kind = call_entry(w.wait.site.nr).kind;
  const bool for_signals = kind == CallKind::signal_wait || std::ranges::find(w.wait.awaited, ResourceKind::signal,
                                                                              &Resource::kind) != w.wait.awaited.end();
  if (!for_signals && !is_set(kind)) return;
  if (!senders_.knows(family, by->id) && by->tgid != family.parent.tid &&
      observe::family_of(procfs_, by->tgid) != family)
    return;
  senders_.ended(family, by->id, !for_signals);
}

// What the siblings of a process have taught about waits for signals. Where those are ended by a handler, a wait in a
// set is one for signals, too.
void BpfObserver::name_kin(Watched& w, std::vector<Event>& out, std::size_t first) {
  const CallKind kind = call_entry(w.wait.site.nr).kind;
  auto signal = std::ranges::find(w.wait.awaited, ResourceKind::signal, &Resource::kind);
  if (signal == w.wait.awaited.end() && kind != CallKind::signal_wait && !is_set(kind)) return;
  // Now: a process that lives for one request is gone by the time that its wait is known to have ended.
  if (!family_of(w).valid() || senders_.version() == 0 || out.size() == first) return;
  auto* blocked = std::get_if<Blocked>(&out[first]);
  if (blocked == nullptr || blocked->awaited.empty()) return;
  if (signal == w.wait.awaited.end()) {
    if (!senders_.has_latches(*w.family)) return;
    const auto process = procfs_.thread_id(w.wait.member.tgid);
    if (!process) return;
    w.wait.awaited.push_back(signal_to(*process));
    blocked->awaited = w.wait.awaited;
    signal = w.wait.awaited.end() - 1;
  } else if (std::exchange(w.kin_told, senders_.version()) == senders_.version()) {
    return;
  }
  for (const ThreadId sender : senders_.of(*w.family))
    if (sender != w.wait.member.id)
      out.emplace_back(
          Accessed{.time = w.wait.since, .thread = sender, .resource = *signal, .evidence = Evidence::kin});
}

}  // namespace swapd::observe
