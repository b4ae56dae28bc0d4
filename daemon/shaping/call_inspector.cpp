#include "shaping/call_inspector.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "sys/seccomp/seccomp.h"

namespace swapd::daemon {
namespace {

using decide::Device;
using decide::IoDirection;
using decide::Tokens;
using decide::WantedCall;
using observe::IoAmount;
using observe::IoCall;
using observe::IoMoved;

constexpr Tokens no_pipe_is_smaller = 4096;
// A call that asks for less is not looked at more closely: no limit makes much of it.
constexpr Tokens is_large = 128 << 10;
constexpr Device unknown_disk{Device::Kind::disk, 0}, unknown_link{Device::Kind::network, 0};

}  // namespace

decide::CallKind kind_of(const IoCall& call) {
  using decide::CallKind;
  CallKind out;
  switch (call.amount) {
    case IoAmount::none:
      out.amount = CallKind::Amount::nothing;
      break;
    case IoAmount::entry:
      out.amount = CallKind::Amount::entry;
      break;
    case IoAmount::submits:
      out.amount = CallKind::Amount::submission;
      break;
    case IoAmount::ring:
      out.amount = CallKind::Amount::ring;
      break;
    case IoAmount::count:
    case IoAmount::vector:
    case IoAmount::message:
    case IoAmount::messages:
      break;
  }
  out.told = call.moved == IoMoved::asked  ? CallKind::Told::by_none
             : call.moved == IoMoved::disk ? CallKind::Told::by_disk
                                           : CallKind::Told::by_chars;
  return out;
}

CallInspector::CallInspector(const ShapingParts& parts, std::shared_ptr<const Fd> listener)
    : listener_(std::move(listener)),
      targets_(parts.procfs, parts.disks),
      likely_(parts.procfs, parts.disks, targets_) {}

Device CallInspector::disk_of_pages(const Subject& subject, Time now) {
  const auto pages = likely_.pages(subject.tgid, subject.limits, now);
  return pages ? *pages : subject.disk.value_or(unknown_disk);
}

Device CallInspector::disk_of_directories(const Subject& subject, Device otherwise, Time now) {
  return likely_.directories(subject.tgid, subject.limits, now).value_or(otherwise);
}

// Accounting alone tells what a ring does, so it may be either direction.
WantedCall CallInspector::wanted_of_ring(const Subject& subject, Time now) {
  Wanted out;
  const FileDevices devices = likely_.files(subject.tgid, subject.tid, subject.limits, now);
  const Device disk = devices.disk ? *devices.disk : subject.disk.value_or(unknown_disk);
  for (const IoDirection direction : {IoDirection::read, IoDirection::write})
    out.add({.device = disk, .direction = direction, .cost = 1});
  if (!subject.traffic) return out;
  for (const IoDirection direction : {IoDirection::read, IoDirection::write})
    out.add({.device = devices.link.value_or(unknown_link), .direction = direction, .cost = 1});
  return out;
}

// On the disk of the directory that the call names by a descriptor, else of the working directory: a path is not looked
// up, which could take for ever (and its parts may be others' by then).
WantedCall CallInspector::wanted_of_entry(const Call& call, const Notification& notification, const Subject& subject,
                                          Time now) {
  Wanted out;
  const auto direction = observe::changes_entry(call, notification.args) ? IoDirection::write : IoDirection::read;
  const std::uint8_t arg = call.in_arg != IoCall::no_arg ? call.in_arg : call.out_arg;
  const int fd = arg < notification.args.size() ? static_cast<int>(notification.args.at(arg)) : AT_FDCWD;
  Device disk = subject.disk.value_or(unknown_disk);
  if (fd != AT_FDCWD) {
    const auto target = targets_.find(subject.tid, fd, {}, now);
    if (!target || target->kind != observe::IoTarget::Kind::disk) return out;
    disk = disk_of(*target, subject.limits);
  } else {
    disk = disk_of_directories(subject, disk, now);
  }
  out.add({.device = disk, .direction = direction, .cost = 1});
  return out;
}

// Between a pipe and a file: no more than the pipe holds, or has room for. (The thread at its other end may go on
// meanwhile; then that is the next call's.)
Tokens CallInspector::through_pipe(const Call& call, const Notification& notification, Tokens asked) const {
  if (asked <= no_pipe_is_smaller) return asked;
  for (const auto& [arg, fills] : {std::pair{call.in_arg, false}, std::pair{call.out_arg, true}}) {
    const auto pipe = targets_.pipe(notification.tid, static_cast<int>(notification.args.at(arg)));
    if (!pipe) continue;
    const Tokens most = fills ? pipe->room_in_all - pipe->holds : pipe->holds;
    asked = std::min(asked, most > 0 ? most : pipe->room_in_all);  // else it waits until there is some
  }
  return asked;
}

// Each of its requests says what it is about; those of one disk and direction are one transfer.
WantedCall CallInspector::wanted_of_submission(const std::vector<observe::IoRequest>& requests, const Subject& subject,
                                               Time now) {
  Wanted out;
  out.known = false;
  for (const observe::IoRequest& request : requests) {
    const auto target = targets_.find(subject.tid, request.fd, {}, now);
    if (!target || target->kind != observe::IoTarget::Kind::disk) continue;
    const decide::Transfer transfer{.device = disk_of(*target, subject.limits),
                                    .direction = request.writes ? IoDirection::write : IoDirection::read,
                                    .cost = request.bytes};
    const auto transfers = std::span(out.transfers).first(out.count);
    const auto same = std::ranges::find_if(transfers, [&](const decide::Transfer& other) {
      return other.device == transfer.device && other.direction == transfer.direction;
    });
    if (same == transfers.end() && out.count < decide::Reservation::max_transfers)
      out.add(transfer);
    else
      (same == transfers.end() ? transfers.back() : *same).cost += transfer.cost;
  }
  return out;
}

// How much of this part of a file a call can move, at most.
CallInspector::Left CallInspector::left_in_file(const Call& call, const Notification& notification, std::int64_t size,
                                                const observe::ReadTarget& read, const Subject& subject,
                                                Tokens asked) const {
  const int fd = static_cast<int>(notification.args.at(call.in_arg));
  if (asked < is_large) return {.bytes = std::min(asked, std::max<Tokens>(size, 1))};
  const auto said = observe::position(call, notification.args, read);
  const std::int64_t from = said ? *said : targets_.position(notification.tid, fd);
  const Tokens left = std::min(asked, std::max<Tokens>(size - from, 1));
  const bool counts_cached = subject.limits.mode != decide::ShapeMode::device || left < is_large;
  return {.bytes = left, .cached = counts_cached ? 0 : targets_.cached(notification.tid, fd, from, left)};
}

// It is not known before what a receiver will get; it is settled afterwards. A file has no more than its size.
void CallInspector::add_transfer(Wanted& want, const Call& call, const Notification& notification, std::uint8_t arg,
                                 IoDirection direction, const observe::IoTarget& target,
                                 const observe::ReadTarget& read, const Subject& subject) const {
  const bool network = target.kind == observe::IoTarget::Kind::network;
  const Device device = network ? Device{Device::Kind::network, target.device} : disk_of(target, subject.limits);
  Tokens cost = want.asked;
  if (direction == IoDirection::read && network) cost = 1;
  if (direction == IoDirection::read && target.size >= 0) {
    const Left left = left_in_file(call, notification, target.size, read, subject, cost);
    want.asked = left.bytes;
    cost = std::max<Tokens>(left.bytes - left.cached, 1);
  }
  if (direction == IoDirection::write && network && cost >= is_large) {
    const int fd = static_cast<int>(notification.args.at(arg));
    const auto most = targets_.takes_at_once(notification.tid, fd, observe::does_not_wait(notification));
    if (most && *most < cost) {
      want.asked = cost = *most;
      want.known = false;
    }
  }
  want.add({.device = device, .direction = direction, .cost = cost});
}

WantedCall CallInspector::wanted_of_bytes(const Call& call, const Notification& notification,
                                          const observe::ReadTarget& read, const Subject& subject, Time now) {
  Wanted out;
  const auto amount = observe::asked(call, notification.args, read);
  // We may not read what the kernel may (memory that is only written): it waits its turn all the same.
  out.asked = amount ? *amount : 1;
  out.known = amount.ok() && call.amount != IoAmount::messages;  // of many a part is looked at
  if (call.moved == IoMoved::asked && call.in_arg != IoCall::no_arg && call.out_arg != IoCall::no_arg) {
    if (const Tokens fits = through_pipe(call, notification, out.asked); fits != out.asked) {
      out.asked = fits;
      out.known = false;
    }
  }
  std::array<std::byte, 28> address;  // as large as a sockaddr_in6
  const std::size_t address_size = subject.traffic ? observe::sent_to(call, notification.args, read, address) : 0;
  for (const auto& [arg, direction] :
       {std::pair{call.in_arg, IoDirection::read}, std::pair{call.out_arg, IoDirection::write}}) {
    if (arg == IoCall::no_arg) continue;
    const auto target = targets_.find(notification.tid, static_cast<int>(notification.args.at(arg)),
                                      std::span(address).first(address_size), now);
    if (!target || target->kind == observe::IoTarget::Kind::other) continue;
    add_transfer(out, call, notification, arg, direction, *target, read, subject);
  }
  return out;
}

std::optional<WantedCall> CallInspector::wanted(const Call& call, const Notification& notification,
                                                const Subject& subject, Time now) {
  bool looked = false;  // into its memory
  const auto read = [&](std::uint64_t address, void* to, std::size_t size) {
    looked = true;
    return sys::Procfs::read_memory(notification.tid, address, to, size);
  };
  const auto still_waits = [&] { return sys::still_valid(listener_->get(), notification.id); };
  std::optional<Wanted> out;
  switch (call.amount) {
    case IoAmount::ring:
      if (notification.args.at(call.at) != 0)  // else it only waits, or wakes the ring's own thread
        out = wanted_of_ring(subject, now);
      break;
    case IoAmount::entry: {
      const bool of_disk = observe::is_of_disk(call, notification.args, read);
      if (still_waits()) out = of_disk ? wanted_of_entry(call, notification, subject, now) : Wanted{};
      break;
    }
    case IoAmount::submits: {
      const auto requests = observe::requests(call, notification.args, read);
      if (still_waits()) out = requests ? wanted_of_submission(*requests, subject, now) : wanted_of_ring(subject, now);
      break;
    }
    default:
      out = wanted_of_bytes(call, notification, read, subject, now);
      // The memory that was read was this call's only if it still waits.
      if (looked && !still_waits()) out.reset();
  }
  if (out) out->kind = kind_of(call);
  return out;
}

}  // namespace swapd::daemon
