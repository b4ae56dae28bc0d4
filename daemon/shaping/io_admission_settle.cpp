// What a thread has moved since it was last at its gate: its last call's part, and what it moved without one.
#include <algorithm>
#include <mutex>

#include "shaping/io_admission.h"

namespace swapd::daemon {
namespace {

using decide::Device;
using decide::Tokens;
using decide::IoDirection;
using observe::IoMoved;

constexpr Duration max_patience = std::chrono::seconds(2);

Tokens tokens(std::uint64_t count) { return static_cast<Tokens>(std::min<std::uint64_t>(count, TokenBucket::max_burst)); }

// Grows by what goes beyond the calls, shrinks by what they make up for; what goes beyond `most` is the answer.
Tokens beyond(Tokens& besides, Tokens more, Tokens most) {
  besides = std::max(besides + more, Tokens{0});
  const Tokens over = std::max(besides - most, Tokens{0});
  besides -= over;
  return over;
}

}  // namespace

// Debts first: its own tokens it takes when those are paid, so that nobody waits behind both.
Time ShapedCall::due(decide::Shaping& shaping, Time now) {
  const Time paid = debts ? shaping.advance(*debts, pages_only, now) : now;
  return std::max(paid, paid <= now ? shaping.advance(passage, now) : shaping.due(passage, now));
}

// Else it moves what others have made dirty, and paid (fsync), or a directory's blocks, which logical mode leaves out.
bool IoAdmission::moves_bytes(const observe::IoCall& kind, const Shaper::View& view) {
  if (kind.amount == observe::IoAmount::entry) return view.limits.mode == decide::ShapeMode::device;
  return kind.amount != observe::IoAmount::none;
}

// Transfer by transfer.
IoAdmission::Paid IoAdmission::settle_call(Thread& thread, const Seen& seen, const Shaper::View& view, Time now) {
  const observe::IoCall& kind = *thread.kind;
  const bool as_the_disk = view.limits.mode == decide::ShapeMode::device || kind.moved == IoMoved::disk;
  const decide::Reservation& passage = thread.call->passage;
  decide::Shaping::Moved moved;
  Paid paid;
  for (std::size_t transfer = 0; transfer < passage.transfers; ++transfer) {
    const bool reads = passage.directions.at(transfer) == IoDirection::read;
    const Tokens disk = tokens(reads ? seen.disk.read_bytes : seen.disk.written_bytes);
    Tokens chars = tokens(reads ? seen.disk.read_chars : seen.disk.written_chars);
    if (kind.moved == IoMoved::asked)
      chars = kind.amount == observe::IoAmount::submits ? thread.costs[transfer] : thread.asked;
    if (kind.moved == IoMoved::disk) chars = disk;
    Tokens& bytes = moved.bytes.at(transfer);
    if (thread.network[transfer]) {
      if (thread.counted)
        bytes = tokens(reads ? seen.traffic.received : seen.traffic.sent);
      else if (kind.amount != observe::IoAmount::ring)
        bytes = chars;
      continue;
    }
    if (!moves_bytes(kind, view)) continue;
    bytes = as_the_disk ? disk : chars;
    (reads ? paid.read : paid.written) += bytes;
    if (transfer == 0 && reads) moved.cached = std::max(chars - disk, Tokens{0});
  }
  const std::lock_guard lock(shaper_.mutex_);
  moved.waited = thread.call->waited;
  moved.calls = thread.call->calls;
  if (!thread.call->withdrawn) thread.debts->add(shaper_.shaping_.settle(passage, moved, now), false);
  return paid;
}

// Paid by this thread before its next call. pages: before any, else before one that moves something.
void IoAdmission::charge(Thread& thread, const Shaper::View& view, Device device, IoDirection direction, Tokens bytes, Time now,
                       bool pages) const {
  if (bytes <= 0) return;
  const std::lock_guard lock(shaper_.mutex_);
  const auto index = shaper_.shaping_.find(view.name);
  if (!index) return;
  thread.charged = shaper_.shaping_.charge(*index, device, direction, bytes, now);
  thread.debts->add(thread.charged, pages);
}

// What is read without a call that comes to a gate may be pages of mapped files, or directories and inodes (getdents64,
// stat, unlink ...). The pages come by faults.
Tokens IoAdmission::max_paged(Thread& thread) const {
  const auto stat = thread.tid != 0 ? shaper_.procfs_.stat(thread.tid) : Error(ESRCH, "");
  if (!stat) return read_by_fault;
  const std::uint64_t faults = stat->major_faults - std::min(thread.faults, stat->major_faults);
  thread.faults = stat->major_faults;
  return tokens(faults) * read_by_fault;
}

// Pages that were read or written without a call: as far as they are not the last call's own. paid: for that, by it.
void IoAdmission::settle_mapped(Thread& thread, const Seen& seen, const Paid& paid, const Shaper::View& view, Time now) {
  bool call_reads = false, call_writes = false, network = false;
  if (thread.call) {
    for (std::size_t transfer = 0; transfer < thread.call->passage.transfers; ++transfer) {
      if (thread.network[transfer])
        network = true;
      else if (thread.kind != nullptr && moves_bytes(*thread.kind, view))
        (thread.call->passage.directions.at(transfer) == IoDirection::read ? call_reads : call_writes) = true;
    }
  }
  const bool as_the_disk =
      view.limits.mode == decide::ShapeMode::device || (thread.kind != nullptr && thread.kind->moved == IoMoved::disk);
  Tokens read = tokens(seen.disk.read_bytes), written = tokens(seen.disk.written_bytes);
  if (call_reads) read = beyond(thread.ahead, read - paid.read, moves_besides);
  const auto calls = thread.call ? static_cast<Tokens>(thread.call->calls) : 1;
  if (call_writes) written = as_the_disk ? 0 : std::max(written - paid.written - calls * moves_besides, Tokens{0});
  if (read > 0 || written > 0) {
    // What the disk read ahead of a call is on that call's disk.
    const bool by_call = (read == 0 || call_reads) && (written == 0 || call_writes) && thread.disk;
    const Device disk = by_call ? *thread.disk : disk_of_pages(thread, view, now);
    const Tokens pages = std::min(read, max_paged(thread));
    charge(thread, view, disk, IoDirection::read, pages, now, true);
    const Tokens inodes = read - pages;  // and directories
    const Device tree =
        by_call || inodes == 0 ? disk : likely_.directories(thread.tgid, view.limits, now).value_or(disk);
    charge(thread, view, tree, IoDirection::read, inodes, now, false);
    charge(thread, view, disk, IoDirection::write, written, now, true);
  }
  // A call that could not be seen into may have moved them.
  if (network) return;
  charge(thread, view, {Device::Kind::network, 0}, IoDirection::read, tokens(seen.traffic.received), now, true);
  charge(thread, view, {Device::Kind::network, 0}, IoDirection::write, tokens(seen.traffic.sent), now, true);
}

void IoAdmission::settle_workers(Thread& thread, const Shaper::View& view, Time now) {
  // Where pages are paid at once, those of the workers are too.
  const auto less = [this](pid_t tid, sys::IoCounters& moved) { take_paid(tid, moved, false); };
  const auto grown = workers_.grown(thread.tgid, view.traffic, now, less);
  const auto charge_both = [&](const Device& device, std::uint64_t read, std::uint64_t written) {
    charge(thread, view, device, IoDirection::read, tokens(read), now, true);
    charge(thread, view, device, IoDirection::write, tokens(written), now, true);
  };
  const FileDevices files = likely_.known(thread.tgid);
  const Device disk = files.disk ? *files.disk : thread.disk.value_or(Device{Device::Kind::disk, 0});
  charge_both(disk, grown.disk.read_bytes, grown.disk.written_bytes);
  charge_both(files.link.value_or(Device{Device::Kind::network, 0}), grown.link.received, grown.link.sent);
}

// Who is sent the same signals all the time would be held by nothing: they have to wait longer each time, up to
// `max_patience`, until a call of his has waited for its own time.
void IoAdmission::note_signals(Thread& thread, Time now) const {
  const std::lock_guard lock(shaper_.mutex_);
  if (thread.call->signals != 0) {
    thread.signals |= thread.call->signals;
    thread.patience = std::min(2 * std::max(thread.patience, shaper_.options_.slice), max_patience);
    thread.disturbed = now;
  } else if (thread.call->waited >= shaper_.options_.slice || now - thread.disturbed > 2 * thread.patience) {
    thread.signals = 0;
    thread.patience = {};
  }
}

void IoAdmission::settle(Thread& thread, const Seen& seen, const Shaper::View& view, Time now, Settles what) {
  Paid paid;
  if (thread.call) {
    note_signals(thread, now);
    {
      const std::lock_guard lock(shaper_.mutex_);
      thread.call->settled = true;
      // It waited for that alone.
      if (thread.kind == nullptr && thread.call->waited > Duration::zero())
        shaper_.shaping_.waited(thread.charged, thread.call->waited);
    }
    if (thread.kind != nullptr) paid = settle_call(thread, seen, view, now);
  }
  if (what == Settles::all) settle_mapped(thread, seen, paid, view, now);
  thread.call.reset();
  thread.kind = nullptr;
  thread.settled = now;
}

}  // namespace swapd::daemon
