#include "shape_gate.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "sys/seccomp.h"

namespace swapd::daemon {
namespace {

using decide::Device;
using decide::Tokens;
using decide::Way;

// Of a thread that reads a file as well, what the disk reads ahead of its calls is not taken for a mapped file's.
constexpr Tokens read_ahead = 2 << 20;
constexpr std::size_t most_threads = 4096;
constexpr int most_ancestors = 16;
constexpr Duration sought_again = std::chrono::milliseconds(100), met_again = std::chrono::seconds(1);

Tokens tokens(std::uint64_t count) { return static_cast<Tokens>(std::min<std::uint64_t>(count, decide::most_burst)); }

// The nearest device under the file that the class names, else the whole disk it is on.
Device disk_of(const observe::IoTarget& target, const decide::ClassLimits& limits) {
  for (const std::uint64_t number : target.devices)
    if (const Device named{Device::Kind::disk, number}; limits.devices.contains(named)) return named;
  return {Device::Kind::disk, target.device};
}

}  // namespace

ShapeGate::ShapeGate(Shaper& shaper, Fd listener, std::uint32_t slot)
    : shaper_(shaper),
      listener_(std::make_shared<const Fd>(std::move(listener))),
      slot_(slot),
      targets_(shaper.procfs_, shaper.disks_) {}

void ShapeGate::forget(pid_t tid, const Thread& thread) const {
  {
    const std::lock_guard lock(shaper_.mutex_);
    const auto entered = shaper_.entered_.find(tid);
    if (entered != shaper_.entered_.end() && entered->second.gate == this) {  // else the id is another thread's by now
      shaper_.entered_.erase(entered);
      shaper_.paid_.erase(tid);
    }
  }
  if (ends_ && thread.end != 0) ends_->forget(tid, thread.end);
  if (!thread.counted) return;
  const auto traffic = [&] {
    const std::lock_guard lock(shaper_.mutex_);
    return shaper_.traffic_;
  }();
  if (traffic) traffic->forget(tid);
}

void ShapeGate::erase(pid_t tid) {
  const auto found = threads_.find(tid);
  if (found == threads_.end()) return;
  forget(tid, found->second);
  threads_.erase(found);
}

void ShapeGate::prune(Time now) {
  settle_ended(now);
  std::erase_if(threads_, [&](auto& entry) {
    const bool ended = !entry.second.io || !entry.second.io->read();
    if (ended) forget(entry.first, entry.second);
    return ended;
  });
  if (threads_.size() < most_threads) return;
  for (const auto& [tid, known] : threads_) forget(tid, known);
  threads_.clear();
}

// A process that the engine has not told of yet is in the class of the nearest one above it that is in one.
pid_t ShapeGate::member_above(pid_t tgid) const {
  for (int i = 0; i < most_ancestors && tgid > 1; ++i) {
    const auto stat = shaper_.procfs_.stat(tgid);
    if (!stat) return 0;
    tgid = stat->ppid;
    if (shaper_.view(tgid)) return tgid;
  }
  return 0;
}

Shaper::ViewPtr ShapeGate::view_of(Thread& thread, Time now) {
  if (auto own = shaper_.view(thread.tgid)) {
    if (own->limited) of_listener_ = own->index;
    return own;
  }
  if (now - thread.parent_sought >= sought_again) {
    thread.parent = member_above(thread.tgid);
    thread.parent_sought = now;
  }
  if (thread.parent != 0) return shaper_.view(thread.parent);
  // Whoever is under this filter comes of a program of this class: its parents have ended, or it was above a quota.
  return of_listener_ ? shaper_.view_of_class(*of_listener_) : nullptr;
}

// One that has nothing open here may be another process's by now, with the same id.
ShapeGate::Thread* ShapeGate::thread(pid_t tid, Time now) {
  const auto found = threads_.find(tid);
  if (found != threads_.end() && (found->second.io || now - found->second.met < met_again)) return &found->second;
  if (threads_.size() >= most_threads) prune(now);
  const auto tgid = shaper_.procfs_.tgid(tid);
  if (!tgid) return nullptr;
  Thread& made = threads_[tid];
  made.tgid = *tgid;
  made.met = now;
  return &made;
}

std::optional<ShapeGate::Seen> ShapeGate::look(Thread& thread, pid_t tid, const Shaper::View& view) {
  const bool first = !thread.io;
  if (first) {
    auto opened = sys::ThreadIo::open(shaper_.procfs_.root(), tid);
    if (!opened) return std::nullopt;
    thread.io = std::move(opened).value();
  }
  const auto now = thread.io->read();
  if (!now) return std::nullopt;
  const sys::IoCounters before = std::exchange(thread.counters, *now);
  Seen seen;
  const bool backwards = sys::goes_backwards(before, *now);
  if (backwards) take_back(thread, shaper_.clock_.now());  // a thread that execs has taken the place of the first one
  if (!first && !backwards) seen.disk = sys::between(before, *now);
  if (first || backwards) ask_for_end(thread, tid, view);
  if (view.limits.freezes) {
    note_entry(tid, thread);
    take_paid(tid, seen, first || backwards);
  }
  if (!view.traffic)
    thread.counted = false;
  else if (thread.counted)
    seen.traffic = traffic_of(thread, tid, *view.traffic);
  else {
    thread.counted = view.traffic->count(tid).ok();
    thread.traffic = {};
  }
  return seen;
}

// Since the last time.
sys::NetIo::Counters ShapeGate::traffic_of(Thread& thread, pid_t tid, sys::NetIo& traffic) const {
  const auto now = traffic.read(tid);
  thread.counted = now.ok();
  if (!now) return {};
  const sys::NetIo::Counters before = std::exchange(thread.traffic, *now);
  if (now->received < before.received || now->sent < before.sent) return {};
  return {.received = now->received - before.received, .sent = now->sent - before.sent};
}

void ShapeGate::note_entry(pid_t tid, const Thread& thread) const {
  const std::lock_guard lock(shaper_.mutex_);
  Shaper::Entries& entries = shaper_.entered_[tid];
  ++entries.count;
  entries.calls_before = thread.counters.calls;
  entries.gate = this;
}

// What was charged to it already, without a call. anew: what is counted begins here.
void ShapeGate::take_paid(pid_t tid, Seen& seen, bool anew) const {
  const std::lock_guard lock(shaper_.mutex_);
  const auto found = shaper_.paid_.find(tid);
  if (found == shaper_.paid_.end()) return;
  if (anew) {
    shaper_.paid_.erase(found);
    return;
  }
  const auto take = [](std::uint64_t& bytes, Tokens& paid) {
    const auto taken = std::min(bytes, static_cast<std::uint64_t>(std::max(paid, Tokens{0})));
    bytes -= taken;
    paid -= static_cast<Tokens>(taken);
  };
  take(seen.disk.read_bytes, found->second.read);
  take(seen.disk.written_bytes, found->second.written);
}

// What the last call has moved, leg by leg.
void ShapeGate::settle_call(Thread& thread, const Seen& seen, const Shaper::View& view, Time now) {
  const bool device_mode = view.limits.mode == decide::ShapeMode::device;
  const observe::IoCall& kind = *thread.kind;
  const decide::Passage& passage = thread.call->passage;
  decide::Shaping::Moved moved;
  for (std::size_t leg = 0; leg < passage.legs; ++leg) {
    const bool reads = passage.ways.at(leg) == Way::read;
    const Tokens chars = kind.amount == observe::IoAmount::none ? 0
                         : kind.counted ? tokens(reads ? seen.disk.read_chars : seen.disk.written_chars)
                                        : thread.asked;
    const Tokens disk = tokens(reads ? seen.disk.read_bytes : seen.disk.written_bytes);
    Tokens& bytes = moved.bytes.at(leg);
    if (thread.network[leg])
      bytes = thread.counted ? tokens(reads ? seen.traffic.received : seen.traffic.sent) : chars;
    else
      bytes = device_mode || kind.amount == observe::IoAmount::ring ? disk : chars;
    if (leg == 0 && reads && !thread.network[leg]) moved.cached = std::max(chars - disk, Tokens{0});
  }
  const std::lock_guard lock(shaper_.mutex_);
  moved.waited = thread.call->waited;
  thread.call->settled = true;
  if (!thread.call->withdrawn) shaper_.shaping_.settle(passage, moved, now);
}

// Pages that were read or written without a call: as far as they are not the last call's own.
void ShapeGate::settle_mapped(const Thread& thread, const Seen& seen, const Shaper::View& view, Time now) {
  bool call_reads = false, call_writes = false;
  if (thread.call) {
    for (std::size_t leg = 0; leg < thread.call->passage.legs; ++leg) {
      if (thread.network[leg]) continue;
      (thread.call->passage.ways.at(leg) == Way::read ? call_reads : call_writes) = true;
    }
  }
  const bool device_mode = view.limits.mode == decide::ShapeMode::device;
  Tokens read = tokens(seen.disk.read_bytes), written = tokens(seen.disk.written_bytes);
  if (call_reads) read = device_mode ? 0 : std::max(read - tokens(seen.disk.read_chars) - read_ahead, Tokens{0});
  if (call_writes) written = 0;
  // A call that could not be seen into may have moved them.
  const bool network = thread.call && (thread.network[0] || (thread.call->passage.legs > 1 && thread.network[1]));
  const Tokens received = network ? 0 : tokens(seen.traffic.received), sent = network ? 0 : tokens(seen.traffic.sent);
  if (read == 0 && written == 0 && received == 0 && sent == 0) return;
  const Device disk = thread.disk.value_or(Device{Device::Kind::disk, 0});
  const std::lock_guard lock(shaper_.mutex_);
  const auto index = shaper_.shaping_.find(view.name);
  if (!index) return;
  shaper_.shaping_.charge(*index, disk, Way::read, read, now);
  shaper_.shaping_.charge(*index, disk, Way::write, written, now);
  shaper_.shaping_.charge(*index, {Device::Kind::network, 0}, Way::read, received, now);
  shaper_.shaping_.charge(*index, {Device::Kind::network, 0}, Way::write, sent, now);
}

void ShapeGate::settle(Thread& thread, const Seen& seen, const Shaper::View& view, Time now) {
  if (thread.call && thread.kind != nullptr) settle_call(thread, seen, view, now);
  settle_mapped(thread, seen, view, now);
  thread.call.reset();
  thread.kind = nullptr;
}

std::optional<ShapeGate::Wanted> ShapeGate::wanted(const observe::IoCall& call, const sys::Notification& notification,
                                                   const decide::ClassLimits& limits, Time now) {
  Wanted out;
  bool looked = false;  // into its memory
  const auto read = [&](std::uint64_t address, void* to, std::size_t size) {
    looked = true;
    return sys::Procfs::read_memory(notification.tid, address, to, size);
  };
  std::array<std::byte, 28> address;  // as large as a sockaddr_in6
  std::size_t address_size = 0;
  if (call.address_arg != observe::IoCall::no_arg && notification.args.at(call.address_arg) != 0) {
    address_size = std::min<std::size_t>(notification.args.at(call.address_arg + 1U), address.size());
    if (!read(notification.args.at(call.address_arg), address.data(), address_size)) address_size = 0;
  }
  const auto add = [&](std::uint8_t arg, Way way) {
    if (arg == observe::IoCall::no_arg) return;
    const auto target = targets_.find(notification.tid, static_cast<int>(notification.args.at(arg)),
                                      std::span(address).first(address_size), now);
    if (!target || target->kind == observe::IoTarget::Kind::other) return;
    const bool network = target->kind == observe::IoTarget::Kind::network;
    const Device device = network ? Device{Device::Kind::network, target->device} : disk_of(*target, limits);
    // What a receiver will get nobody knows before; it is settled afterwards. A file has no more than its size.
    Tokens cost = out.asked;
    if (way == Way::read && network) cost = 1;
    if (way == Way::read && target->size >= 0) out.asked = cost = std::min(cost, std::max<Tokens>(target->size, 1));
    out.network[out.count] = network;
    out.legs[out.count++] = {.device = device, .way = way, .cost = cost};
  };
  if (call.amount == observe::IoAmount::ring) {
    if (notification.args.at(call.at) == 0) return std::nullopt;  // it only waits
    out.legs[out.count++] = {.device = {Device::Kind::disk, 0}, .way = Way::read, .cost = 1};
    return out;
  }
  const auto amount = observe::asked(call, notification.args, read);
  // We may not read what the kernel may (memory that is only written): it waits its turn all the same.
  out.asked = amount ? *amount : 1;
  add(call.in_arg, Way::read);
  add(call.out_arg, Way::write);
  // What was read was this call's memory only if it still waits.
  if (looked && !sys::still_valid(listener_->get(), notification.id)) return std::nullopt;
  if (out.count == 0) return std::nullopt;
  return out;
}

bool ShapeGate::holds(const sys::Notification& notification) {
  const observe::IoCall* call = observe::io_call(notification.nr);
  if (call == nullptr) return false;
  const Time now = shaper_.clock_.now();
  settle_ended(now);  // before an id is used again, or another thread takes it over as it execs
  Thread* found = thread(notification.tid, now);
  if (found == nullptr) return false;
  const Shaper::ViewPtr view = view_of(*found, now);
  if (!view || !view->limited) {
    found->io.reset();  // what it does now is nobody's to pay for
    found->call.reset();
    found->view.reset();
    return false;
  }
  auto seen = look(*found, notification.tid, *view);
  if (!seen) {  // another thread's id by now
    settle_ended(now);
    erase(notification.tid);
    found = thread(notification.tid, now);
    if (found == nullptr) return false;
    seen = look(*found, notification.tid, *view);
    if (!seen) return false;
  }
  Thread& caller = *found;
  settle(caller, *seen, *view, now);
  caller.view = view;
  const auto want = wanted(*call, notification, view->limits, now);
  if (!want) return false;
  caller.kind = call;
  caller.asked = want->asked;
  caller.call = std::make_shared<ShapedCall>();
  for (std::size_t leg = 0; leg < want->count; ++leg) {
    caller.network[leg] = want->network[leg];
    if (!want->network[leg]) caller.disk = want->legs[leg].device;
  }
  Time due = now;
  bool free = shaper_.options_.dry_run;
  {
    const std::lock_guard lock(shaper_.mutex_);
    caller.call->passage = shaper_.shaping_.enter(view->index, want->legs, want->count, now);
    due = shaper_.shaping_.due(caller.call->passage, now);
    free = free || (!view->limits.favoured_wait && shaper_.favoured_.contains(notification.tid));
  }
  return due > now && !free && hold(notification, caller, view->limits.favoured_wait, due, now);
}

}  // namespace swapd::daemon
