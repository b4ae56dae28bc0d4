// What a call is about to move, and where.
#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

#include "shaping/io_admission.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::daemon {
namespace {

using decide::Device;
using decide::Tokens;
using decide::IoDirection;

constexpr Tokens no_pipe_is_smaller = 4096;
// A call that asks for less is not looked at more closely: no limit makes much of it.
constexpr Tokens is_large = 128 << 10;

}  // namespace

Device IoAdmission::disk_of_pages(const Thread& thread, const Shaper::View& view, Time now) {
  const auto pages = likely_.pages(thread.tgid, view.limits, now);
  return pages ? *pages : thread.disk.value_or(Device{Device::Kind::disk, 0});
}

// What it does is told by accounting alone, so it may be either way.
IoAdmission::Wanted IoAdmission::wanted_of_ring(const Thread& thread, pid_t tid, const Shaper::View& view, Time now) {
  Wanted out;
  const FileDevices devices = likely_.files(thread.tgid, tid, view.limits, now);
  const auto add = [&](const Device& device, IoDirection direction) {
    out.network[out.count] = device.kind == Device::Kind::network;
    out.transfers[out.count++] = {.device = device, .direction = direction, .cost = 1};
  };
  const Device disk = devices.disk ? *devices.disk : thread.disk.value_or(Device{Device::Kind::disk, 0});
  for (const IoDirection direction : {IoDirection::read, IoDirection::write}) add(disk, direction);
  if (!view.traffic) return out;
  for (const IoDirection direction : {IoDirection::read, IoDirection::write}) add(devices.link.value_or(Device{Device::Kind::network, 0}), direction);
  return out;
}

// On the disk of the directory that it names by a descriptor, else of the working directory: a path is not looked up,
// which could take for ever (and its parts may be others' by then).
IoAdmission::Wanted IoAdmission::wanted_of_entry(const observe::IoCall& call, const sys::Notification& notification,
                                             const Thread& thread, const Shaper::View& view, Time now) {
  Wanted out;
  const IoDirection direction = observe::changes_entry(call, notification.args) ? IoDirection::write : IoDirection::read;
  const std::uint8_t arg = call.in_arg != observe::IoCall::no_arg ? call.in_arg : call.out_arg;
  const int fd = arg < notification.args.size() ? static_cast<int>(notification.args.at(arg)) : AT_FDCWD;
  Device disk = thread.disk.value_or(Device{Device::Kind::disk, 0});
  if (fd != AT_FDCWD) {
    const auto target = targets_.find(notification.tid, fd, {}, now);
    if (!target || target->kind != observe::IoTarget::Kind::disk) return out;
    disk = disk_of(*target, view.limits);
  } else if (const auto here = likely_.directories(thread.tgid, view.limits, now)) {
    disk = *here;
  }
  out.transfers[out.count++] = {.device = disk, .direction = direction, .cost = 1};
  return out;
}

// Between a pipe and a file: no more than the pipe holds, or has room for. (Whoever is at its other end may go on
// meanwhile; then it is the next call's.)
Tokens IoAdmission::through_pipe(const observe::IoCall& call, const sys::Notification& notification, Tokens asked) const {
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
IoAdmission::Wanted IoAdmission::wanted_of_submission(const std::vector<observe::IoRequest>& requests, pid_t tid,
                                                  const Shaper::View& view, Time now) {
  Wanted out;
  out.known = false;
  for (const observe::IoRequest& request : requests) {
    const auto target = targets_.find(tid, request.fd, {}, now);
    if (!target || target->kind != observe::IoTarget::Kind::disk) continue;
    const decide::Transfer transfer{
        .device = disk_of(*target, view.limits), .direction = request.writes ? IoDirection::write : IoDirection::read, .cost = request.bytes};
    const auto transfers = std::span(out.transfers).first(out.count);
    auto same = std::ranges::find_if(
        transfers, [&](const decide::Transfer& other) { return other.device == transfer.device && other.direction == transfer.direction; });
    if (same == transfers.end() && out.count < decide::Reservation::max_transfers)
      out.transfers[out.count++] = transfer;
    else
      (same == transfers.end() ? transfers.back() : *same).cost += transfer.cost;
  }
  return out;
}

// How much of this part of a file a call can move, at most.
IoAdmission::Left IoAdmission::left_in_file(const observe::IoCall& call, const sys::Notification& notification,
                                        std::int64_t size, const observe::ReadTarget& read, const Shaper::View& view,
                                        Tokens asked) const {
  const int fd = static_cast<int>(notification.args.at(call.in_arg));
  if (asked < is_large) return {.bytes = std::min(asked, std::max<Tokens>(size, 1))};
  const auto said = observe::position(call, notification.args, read);
  const std::int64_t from = said ? *said : targets_.position(notification.tid, fd);
  const Tokens left = std::min(asked, std::max<Tokens>(size - from, 1));
  const bool counts_cached = view.limits.mode != decide::ShapeMode::device || left < is_large;
  return {.bytes = left, .cached = counts_cached ? 0 : targets_.cached(notification.tid, fd, from, left)};
}

std::optional<IoAdmission::Wanted> IoAdmission::wanted(const observe::IoCall& call, const sys::Notification& notification,
                                                   const Thread& thread, const Shaper::View& view, Time now) {
  if (call.amount == observe::IoAmount::ring) {
    workers_.note(thread.tgid, view.traffic, now);
    if (notification.args.at(call.at) == 0) return std::nullopt;  // it only waits, or wakes the ring's own thread
    return wanted_of_ring(thread, notification.tid, view, now);
  }
  Wanted out;
  bool looked = false;  // into its memory
  const auto read = [&](std::uint64_t address, void* to, std::size_t size) {
    looked = true;
    return sys::Procfs::read_memory(notification.tid, address, to, size);
  };
  if (call.amount == observe::IoAmount::entry) {
    const bool of_disk = observe::is_of_disk(call, notification.args, read);
    if (!sys::still_valid(listener_->get(), notification.id)) return std::nullopt;
    return of_disk ? wanted_of_entry(call, notification, thread, view, now) : Wanted{};
  }
  if (call.amount == observe::IoAmount::submits) {
    const auto requests = observe::requests(call, notification.args, read);
    if (!sys::still_valid(listener_->get(), notification.id)) return std::nullopt;
    return requests ? wanted_of_submission(*requests, notification.tid, view, now)
                    : wanted_of_ring(thread, notification.tid, view, now);
  }
  const auto amount = observe::asked(call, notification.args, read);
  // We may not read what the kernel may (memory that is only written): it waits its turn all the same.
  out.asked = amount ? *amount : 1;
  out.known = amount.ok() && call.amount != observe::IoAmount::messages;  // of many a part is looked at
  if (call.moved == observe::IoMoved::asked && call.in_arg != observe::IoCall::no_arg &&
      call.out_arg != observe::IoCall::no_arg) {
    if (const Tokens fits = through_pipe(call, notification, out.asked); fits != out.asked) {
      out.asked = fits;
      out.known = false;
    }
  }
  std::array<std::byte, 28> address;  // as large as a sockaddr_in6
  const std::size_t address_size = view.traffic ? observe::sent_to(call, notification.args, read, address) : 0;
  const auto add = [&](std::uint8_t arg, IoDirection direction) {
    if (arg == observe::IoCall::no_arg) return;
    const auto target = targets_.find(notification.tid, static_cast<int>(notification.args.at(arg)),
                                      std::span(address).first(address_size), now);
    if (!target || target->kind == observe::IoTarget::Kind::other) return;
    const bool network = target->kind == observe::IoTarget::Kind::network;
    const Device device = network ? Device{Device::Kind::network, target->device} : disk_of(*target, view.limits);
    // What a receiver will get nobody knows before; it is settled afterwards. A file has no more than its size.
    Tokens cost = out.asked;
    if (direction == IoDirection::read && network) cost = 1;
    if (direction == IoDirection::read && target->size >= 0) {
      const Left left = left_in_file(call, notification, target->size, read, view, cost);
      out.asked = left.bytes;
      cost = std::max<Tokens>(left.bytes - left.cached, 1);
    }
    if (direction == IoDirection::write && network && cost >= is_large) {
      const int fd = static_cast<int>(notification.args.at(arg));
      if (const auto most = targets_.takes_at_once(notification.tid, fd, observe::does_not_wait(notification));
          most && *most < cost) {
        out.asked = cost = *most;
        out.known = false;
      }
    }
    out.network[out.count] = network;
    out.transfers[out.count++] = {.device = device, .direction = direction, .cost = cost};
  };
  add(call.in_arg, IoDirection::read);
  add(call.out_arg, IoDirection::write);
  // What was read was this call's memory only if it still waits.
  if (looked && !sys::still_valid(listener_->get(), notification.id)) return std::nullopt;
  return out;
}

}  // namespace swapd::daemon
