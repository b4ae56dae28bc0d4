#include <sys/file.h>
#include <sys/syscall.h>

#include "observe/resolve/futex_owner.h"
#include "observe/resolve/resolver_impl.h"

namespace swapd::observe {

bool same_access(const CallSite& a, const CallSite& b) {
  if (a.tid != b.tid || a.tgid != b.tgid || a.nr != b.nr) return false;
  const CallEntry& entry = call_entry(a.nr);
  switch (entry.kind) {
    case CallKind::transfer:
      return entry.addr_arg == 0 ? a.args.at(entry.fd_arg) == b.args.at(entry.fd_arg) : a.args == b.args;
    case CallKind::sysv_msg:
    case CallKind::sysv_sem:
    case CallKind::posix_mq:
      return a.args[0] == b.args[0];
    default:
      return a.args == b.args;
  }
}

Access Resolver::Impl::access(const CallSite& site, By by) {
  Access out{.accessed = {}, .released = {}, .complete = true};
  const CallEntry& entry = call_entry(site.nr);
  switch (entry.kind) {
    case CallKind::transfer:
      transfer_access(out, site, entry, by);
      break;
    case CallKind::copy:
      end_access(out, site, entry.in_arg, Direction::in);
      end_access(out, site, entry.fd_arg, Direction::out);
      break;
    case CallKind::accept:
      end_access(out, site, entry.fd_arg, Direction::in);
      break;
    case CallKind::connect:
      end_access(out, site, entry.fd_arg, Direction::out);
      address_access(out, site, {site.args[1], site.args[2]}, true, by);
      break;
    case CallKind::sysv_msg:
    case CallKind::sysv_sem:
      if (const auto resource = sysv_resource(site, entry.kind)) add(out.accessed, *resource);
      break;
    case CallKind::posix_mq:
      if (const auto queue = file_in(site, 0)) add(out.accessed, message_queue(*queue));
      break;
    case CallKind::flock:
      if (const auto file = file_in(site, 0)) {
        const bool unlock = (site.args[1] & LOCK_UN) != 0;
        const LockMode wanted = (site.args[1] & LOCK_EX) != 0 ? LockMode::exclusive : LockMode::shared;
        for (const LockMode mode : {LockMode::shared, LockMode::exclusive}) {
          if (unlock) add(out.released, file_lock(*file, mode));
          if (!unlock && mode == wanted) add(out.accessed, file_lock(*file, mode));
        }
      }
      break;
    case CallKind::fcntl: {
      if (by == By::engine) {
        out.complete = false;
        break;
      }
      Wait asked;
      wait_on_lock(asked, site, CallKind::fcntl, by);
      out.accessed = std::move(asked.awaited);
      break;
    }
    case CallKind::kill:
      signal_access(out, site, by);
      break;
    case CallKind::futex:
      if (futex_private(site.args[1]) || by == By::worker) {
        const auto resource = futex_private(site.args[1])
                                  ? private_futex(procfs, {site.tgid, site.process_start}, site.args[0])
                                  : look_up_futex(site.tgid, site.args[0]);
        if (resource) add(out.accessed, *resource);
      } else if (const auto known = known_futex(site.tgid, site.args[0])) {
        add(out.accessed, *known);
      } else {
        out.complete = false;
      }
      break;
    case CallKind::disk:
      out.of_files = site.nr != SYS_execve;  // which closes descriptors
      break;
    default:
      break;
  }
  return out;
}

// The end of the descriptor that the caller uses, and so provides.
std::optional<Resource> Resolver::Impl::end_access(Access& access, const CallSite& site, unsigned arg,
                                                   Direction direction) {
  const auto descriptor = descriptors.look(site.tid, fd_of(site, arg));
  const auto resource = descriptor ? own_end(*descriptor, direction) : std::nullopt;
  if (descriptor && descriptor->type == Descriptor::Type::disk) access.of_files = true;
  if (resource) add(access.accessed, *resource);
  return resource;
}

void Resolver::Impl::transfer_access(Access& access, const CallSite& site, const CallEntry& entry, By by) {
  const auto end = end_access(access, site, entry.fd_arg, entry.direction);
  if (!end || end->kind != ResourceKind::socket || entry.direction != Direction::out) return;
  if (entry.addr_arg != 0) {
    address_access(access, site, {site.args.at(entry.addr_arg), site.args[5]}, false, by);
  } else if (site.nr == SYS_sendmsg) {
    // Its address stands in memory. A socket with a peer for life needs none.
    if (by == By::worker) {
      const auto peers_now = peers.look(site.tid, end->ids[0]).peers;
      if (peers_now && !peers_now->stable)
        address_access(access, site, message_address(site.tid, site.args[1]), false, by);
    } else if (const auto cached = peers.cached(end->ids[0]); !cached || !cached->peers.stable) {
      access.complete = false;
    }
  }
}

// Who sends to an address provides that endpoint: its reader may wait there without knowing anybody.
void Resolver::Impl::address_access(Access& access, const CallSite& site, const Address& address, bool connects,
                                    By by) {
  if (!address) return;
  if (by == By::engine) {
    access.complete = false;
  } else if (const std::uint64_t to = destination(procfs, diag, site.tid, address, connects); to != 0) {
    add(access.accessed, socket_endpoint(to));
  }
}

void Resolver::Impl::signal_access(Access& access, const CallSite& site, By by) {
  pid_t receiver = 0;
  if (site.nr == SYS_pidfd_send_signal) {
    const auto numbers = procfs.fd_numbers(site.tid, fd_of(site, 0));
    receiver = numbers ? numbers->pid : 0;
  } else {
    const bool directed = site.nr == SYS_tgkill || site.nr == SYS_rt_tgsigqueueinfo;
    receiver = static_cast<pid_t>(site.args[directed ? 1 : 0]);
    if (receiver > 0 && !ids.same_namespace(site.tid)) {
      if (by == By::engine) {
        access.complete = false;
        return;
      }
      // A directed signal goes to a thread, which among the processes is found by its process.
      const auto group = directed ? static_cast<pid_t>(site.args[0]) : receiver;
      const auto process = ids.ours(site.tid, group, procfs.processes());
      if (!process) return;
      receiver = directed ? ids.ours(site.tid, receiver, procfs.threads(*process).value_or({})).value_or(0) : *process;
    }
  }
  if (receiver <= 0) return;  // a process group: too many to be told from each other
  if (const auto process = procfs.thread_id(receiver)) add(access.accessed, signal_to(*process));
}

}  // namespace swapd::observe
