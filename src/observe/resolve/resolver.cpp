#include "observe/resolve/resolver.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "observe/resolve/compat_calls.h"
#include "observe/resolve/futex_owner.h"
#include "observe/resolve/lock_calls.h"
#include "observe/resolve/resolver_impl.h"
#include "observe/resolve/wait_sets.h"
#include "sys/process/self_process.h"

namespace swapd::observe {

namespace {

constexpr std::size_t max_remembered_threads = 4096;
constexpr std::size_t max_futexes = 128;       // FUTEX_WAITV_MAX
constexpr std::uint32_t futex2_private = 128;  // FUTEX2_PRIVATE
constexpr std::size_t max_files_tried = 256;
constexpr Duration locks_last = std::chrono::milliseconds(20);

// The duration is the third argument of poll(2), and in memory else.
Pollers::Place sleeping_place(const CallSite& site) {
  return {.nr = site.nr, .args = {site.args[0], site.args[1], site.nr == SYS_clock_nanosleep ? site.args[2] : 0}};
}

}  // namespace

// --- what a blocked thread awaits

Wait Resolver::Impl::resolve(const CallSite& asked, By by) {
  const CallSite site = asked.nr == SYS_restart_syscall ? restarted(asked) : asked;
  Wait wait{.awaited = {}, .complete = true, .owners = {}};
  const CallEntry& entry = call_entry(site.nr);
  switch (entry.kind) {
    case CallKind::transfer:
      wait_on_fd(wait, site, entry.fd_arg, entry.direction, by);
      if (entry.direction == Direction::out) wait_on_address(wait, site, entry, by);
      break;
    case CallKind::copy:
      wait_on_fd(wait, site, entry.in_arg, Direction::in, by);
      wait_on_fd(wait, site, entry.fd_arg, Direction::out, by);
      break;
    case CallKind::accept:
      // Whoever connects ends the wait, and only history can know that: it is the listening socket that is awaited.
      if (const auto own = descriptors.look(site.tid, fd_of(site, 0)); own && own->type == Descriptor::Type::socket)
        add(wait.awaited, socket_endpoint(own->ino));
      break;
    case CallKind::connect:
      if (by == By::engine) {
        wait.complete = false;
      } else if (const auto to = destination(procfs, diag, site.tid, {site.args[1], site.args[2]}, true); to != 0) {
        add(wait.awaited, socket_endpoint(to));
      } else {
        wait_on_fd(wait, site, 0, Direction::out, by);
      }
      break;
    case CallKind::poll:
    case CallKind::select:
    case CallKind::epoll:
      if (entry.kind != CallKind::epoll && site.args[entry.kind == CallKind::poll ? 1 : 0] == 0) {  // a sleep
        wait_between_tries(wait, site, by);
        break;
      }
      [[fallthrough]];
    case CallKind::ring:
      if (by == By::worker)
        look_at_set(wait, asked, site, entry.kind);
      else
        believe_set(wait, site);
      break;
    case CallKind::sysv_msg:
    case CallKind::sysv_sem:
      if (const auto resource = sysv_resource(site, entry.kind)) add(wait.awaited, *resource);
      break;
    case CallKind::posix_mq:
      if (const auto queue = file_in(site, 0)) add(wait.awaited, message_queue(*queue));
      break;
    case CallKind::flock:
    case CallKind::fcntl:
      wait_on_lock(wait, site, entry.kind, by);
      break;
    case CallKind::signal_wait:
      wait_for_signal(wait, site);
      break;
    case CallKind::child_wait:
      wait_for_child(wait, site, by);
      break;
    case CallKind::futex:
      wait_on_futex(wait, site, by);
      break;
    case CallKind::timer:
      wait_between_tries(wait, site, by);
      break;
    case CallKind::kill:
      break;
    case CallKind::disk:
      wait_in_call(wait, site, by);
      break;
    case CallKind::unknown:
      wait_in_call(wait, site, by);
      if (site.nr >= 0 && wait.awaited.empty()) add(wait.awaited, unknown_resource);  // -1: a page fault
      break;
  }
  return wait;
}

void Resolver::Impl::wait_on_fd(Wait& wait, const CallSite& site, unsigned arg, Direction direction, By by) {
  // A descriptor that is gone is a wait that is ending.
  const auto descriptor = descriptors.look(site.tid, fd_of(site, arg));
  if (!descriptor) return;
  if (descriptor->type == Descriptor::Type::disk)
    wait_on_file(wait, site, descriptor->dev, descriptor->ino, by);
  else
    wait_on(wait, site, *descriptor, direction, by);
}

void Resolver::Impl::wait_on(Wait& wait, const CallSite& site, const Descriptor& descriptor, Direction direction,
                             By by) {
  switch (descriptor.type) {
    case Descriptor::Type::socket:
      wait_on_socket(wait, site, descriptor.ino, by);
      break;
    case Descriptor::Type::signalfd:
      wait_for_signal(wait, site);
      break;
    case Descriptor::Type::pidfd:
      if (const auto child = procfs.thread_id(static_cast<pid_t>(descriptor.number)))
        add(wait.awaited, child_exit_of(*child));
      break;
    case Descriptor::Type::inotify:
      if (const auto process = procfs.thread_id(site.tgid))
        add(wait.awaited, file_changes_for(*process, descriptor.number));
      break;
    case Descriptor::Type::disk:
    case Descriptor::Type::timerfd:
    case Descriptor::Type::epoll:
      break;
    case Descriptor::Type::other:
      add(wait.awaited, unknown_resource);
      break;
    default:
      if (const auto resource = other_end(descriptor, direction)) add(wait.awaited, *resource);
  }
}

void Resolver::Impl::wait_on_socket(Wait& wait, const CallSite& site, std::uint64_t inode, By by) {
  std::optional<Peers> found;
  if (by == By::worker) {
    SocketPeers::Looked looked = peers.look(site.tid, inode);
    wait.believed_until = std::min(wait.believed_until, looked.again);
    found = std::move(looked.peers);
    if (!found) add(wait.awaited, unknown_resource);  // netlink, packet, or not known yet
  } else if (auto cached = peers.cached(inode)) {
    found = std::move(cached->peers);
    if (!cached->fresh) wait.complete = false;
  } else {
    wait.complete = false;
  }
  if (!found) return;
  for (const std::uint64_t peer : found->inodes) add(wait.awaited, socket_endpoint(peer));
}

// A datagram with an address of its own waits for room there, whoever the peer is; only the worker can read it.
void Resolver::Impl::wait_on_address(Wait& wait, const CallSite& site, const CallEntry& entry, By by) {
  if (entry.addr_arg == 0 || site.args.at(entry.addr_arg) == 0) return;
  if (by == By::engine) {
    wait.complete = false;
    return;
  }
  const std::uint64_t to = destination(procfs, diag, site.tid, {site.args.at(entry.addr_arg), site.args[5]}, false);
  if (to != 0) wait.awaited = {socket_endpoint(to)};
}

void Resolver::Impl::wait_on_set(Wait& wait, const CallSite& site, CallKind kind) {
  const auto& args = site.args;
  const auto members = kind == CallKind::poll ? poll_members(procfs, descriptors, site.tid, args[0], args[1])
                       : kind == CallKind::select
                           ? select_members(procfs, descriptors, site.tid, args[0], args[1], args[2])
                           : epoll_members(procfs, descriptors, site.tid, fd_of(site, 0));
  for (const WaitMember& member : members) wait_on(wait, site, member.descriptor, member.direction, By::worker);
}

void Resolver::Impl::believe_set(Wait& wait, const CallSite& site) {
  auto known = sets.find(site, time.now());
  wait.complete = known && known->believed;
  if (!known) return;
  wait.awaited = std::move(known->awaited);
  if (known->believed) wait.believed_until = known->until;
}

void Resolver::Impl::look_at_set(Wait& wait, const CallSite& asked, const CallSite& site, CallKind kind) {
  const Time began = time.now();
  const Duration before = sys::own_cpu_time();
  if (kind == CallKind::ring)
    wait_on_ring(wait, site);
  else
    wait_on_set(wait, site, kind);
  WaitSetCache::Look look{.awaited = std::move(wait.awaited), .certain = stands_in(asked), .cost = {}};
  look.cost = sys::own_cpu_time() - before;
  wait.awaited = sets.take(site, std::move(look), began);
}

// Also true where it cannot be told.
bool Resolver::Impl::stands_in(const CallSite& site) const {
  const auto state = procfs.syscall(site.tid);
  if (!state) return true;
  return !state->running && state->in_call && (state->compat ? native_call(state->nr) : state->nr) == site.nr &&
         state->args[0] == site.args[0];
}

void Resolver::Impl::wait_on_lock(Wait& wait, const CallSite& site, CallKind kind, By by) {
  if (kind == CallKind::flock) {
    const auto file = file_in(site, 0);
    if (!file) return;
    add(wait.awaited, file_lock(*file, LockMode::exclusive));
    // A thread that wants the lock alone also waits for those that share it.
    if ((site.args[1] & LOCK_EX) != 0) add(wait.awaited, file_lock(*file, LockMode::shared));
    return;
  }
  const auto command = static_cast<int>(site.args[1]);
  if (command != F_SETLKW && command != F_OFD_SETLKW) return;
  if (by == By::engine) {
    wait.complete = false;
    guess(site, wait);
    return;
  }
  const auto range = requested_range(procfs, site.tid, fd_of(site, 0), site.args[2]);
  const auto file = file_in(site, 0);
  if (!range || !file) return;
  add(wait.awaited, byte_range_lock(*file, range->first, range->last));
  remember(site, wait);
}

// Time ends the sleep. But a thread that sleeps for short again and again waits for what it tries in between.
void Resolver::Impl::wait_between_tries(Wait& wait, const CallSite& site, By by) {
  const Time now = time.now();
  if (by == By::engine) {
    guess(site, wait);
    wait.complete = !pollers.sleeps(site.tid, sleeping_place(site), !wait.awaited.empty(), now);
    if (!pollers.polls(site.tid, now)) wait.awaited.clear();
    return;
  }
  if (!pollers.polls(site.tid, now)) return;
  std::vector<FileId> files;
  for (const int fd : procfs.fds(site.tgid, max_files_tried).value_or({}))
    if (const auto file = procfs.fd_identity(site.tgid, fd); file.ok() && S_ISREG(file->mode))
      files.push_back({file->dev, file->ino});
  // Each look at /proc/locks makes the machine's calls for locks wait for a moment.
  if (!files.empty() && (locks_read == Time{} || now - locks_read >= locks_last)) {
    locks = procfs.locks();
    locks_read = now;
  }
  if (!files.empty()) wait.awaited = contended_locks(locks, files, site.tgid);
  remember(site, wait);
}

void Resolver::Impl::wait_for_signal(Wait& wait, const CallSite& site) {
  if (const auto process = procfs.thread_id(site.tgid)) add(wait.awaited, signal_to(*process));
  if (site.tid == site.tgid) return;
  if (const auto thread = procfs.thread_id(site.tid)) add(wait.awaited, signal_to(*thread));
}

void Resolver::Impl::wait_for_child(Wait& wait, const CallSite& site, By by) {
  pid_t child = 0;  // any
  if (site.nr == SYS_wait4) {
    child = std::max(static_cast<pid_t>(site.args[0]), 0);
  } else if (site.args[0] == P_PID) {
    child = static_cast<pid_t>(site.args[1]);
  } else if (site.args[0] == P_PIDFD) {
    const auto numbers = procfs.fd_numbers(site.tid, fd_of(site, 1));
    if (!numbers || numbers->pid <= 0) return;
    if (const auto ended = procfs.thread_id(numbers->pid)) add(wait.awaited, child_exit_of(*ended));
    return;
  }
  if (child > 0 && !ids.same_namespace(site.tid)) {
    if (by == By::engine) {
      wait.complete = false;
      return;
    }
    const auto children = procfs.children(site.tgid).value_or({});
    child = ids.ours(site.tid, child, children).value_or(-1);
  }
  if (child < 0) return;
  if (child > 0) {
    if (const auto ended = procfs.thread_id(child)) add(wait.awaited, child_exit_of(*ended));
  } else if (const auto parent = procfs.thread_id(site.tgid)) {
    add(wait.awaited, any_child_of(*parent));
  }
}

void Resolver::Impl::wait_on_futex(Wait& wait, const CallSite& site, By by) {
  if (site.nr == SYS_futex_waitv) {
    wait.complete = by == By::worker;
    if (by == By::worker) wait_on_futexes(wait, site);
    return;
  }
  const FutexOp op = futex_op(site.args[1]);
  if (op == FutexOp::none) return;
  const bool is_private = futex_private(site.args[1]);
  if (is_private || by == By::worker) {
    const auto resource = is_private ? private_futex(procfs, {site.tgid, site.process_start}, site.args[0])
                                     : look_up_futex(site.tgid, site.args[0]);
    if (resource) add(wait.awaited, *resource);
  } else if (const auto known = known_futex(site.tgid, site.args[0])) {
    add(wait.awaited, *known);  // a guess: the worker looks
  }
  wait.complete = by == By::worker;
  if (by == By::worker)
    wait.owners = futex_owners(procfs, ids, site.tid, site.tgid, op, site.args[0], site.args[2], !is_private);
}

void Resolver::Impl::wait_on_futexes(Wait& wait, const CallSite& site) {
  std::vector<futex_waitv> waiters(std::min<std::uint64_t>(site.args[1], max_futexes));
  if (waiters.empty() ||
      !sys::Procfs::read_memory(site.tid, site.args[0], waiters.data(), waiters.size() * sizeof(futex_waitv)))
    return;
  for (const futex_waitv& one : waiters) {
    const auto resource = (one.flags & futex2_private) != 0
                              ? private_futex(procfs, {site.tgid, site.process_start}, one.uaddr)
                              : shared_futex(procfs, site.tgid, one.uaddr);
    if (resource) add(wait.awaited, *resource);
  }
}

std::optional<Resource> Resolver::Impl::known_futex(pid_t tgid, std::uint64_t address) {
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock) return std::nullopt;
  const auto found = futexes.find({tgid, address});
  return found == futexes.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Resource> Resolver::Impl::look_up_futex(pid_t tgid, std::uint64_t address) {
  const auto resource = shared_futex(procfs, tgid, address);
  const std::lock_guard lock(mutex);
  if (futexes.size() >= max_remembered_threads) futexes.clear();
  if (resource) futexes[{tgid, address}] = *resource;
  return resource;
}

// --- identities

std::optional<Resource> Resolver::Impl::sysv_resource(const CallSite& site, CallKind kind) const {
  const auto ns = procfs.namespace_inode(site.tid, "ipc");
  if (!ns) return std::nullopt;
  const int id = static_cast<int>(site.args[0]);
  return kind == CallKind::sysv_msg ? sysv_queue(*ns, id) : sysv_semaphores(*ns, id);
}

std::optional<FileId> Resolver::Impl::file_in(const CallSite& site, unsigned arg) const {
  const auto identity = procfs.fd_identity(site.tid, fd_of(site, arg));
  if (!identity) return std::nullopt;
  return FileId{identity->dev, identity->ino};
}

// --- what is remembered

void Resolver::Impl::remember(const CallSite& site, const Wait& wait) {
  const std::lock_guard lock(mutex);
  if (remembered.size() >= max_remembered_threads && !remembered.contains(site.tid)) remembered.clear();
  remembered[site.tid] = {site, wait.awaited};
}

CallSite Resolver::Impl::restarted(const CallSite& site) {
  CallSite out = site;
  out.nr = SYS_poll;
  if (sets.knows(out)) return out;
  out.nr = site.nr;
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock) return out;
  const auto found = remembered.find(site.tid);
  if (found != remembered.end() && found->second.site.tgid == site.tgid && found->second.site.args == site.args)
    out.nr = found->second.site.nr;
  return out;
}

void Resolver::Impl::guess(const CallSite& site, Wait& wait) {
  // The engine never waits for the worker, which may have been preempted while it holds the mutex.
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock) return;
  const auto found = remembered.find(site.tid);
  if (found == remembered.end()) return;
  const CallSite& last = found->second.site;
  if (last.tgid != site.tgid || last.nr != site.nr || last.args[0] != site.args[0] || last.args[1] != site.args[1])
    return;
  wait.awaited = found->second.awaited;
}

// --- the interface

Resolver::Resolver(const sys::Procfs& procfs, sys::SockDiag& diag, const Clock* clock)
    : impl_(std::make_unique<Impl>(procfs, diag, clock)) {}

Resolver::~Resolver() = default;

Wait Resolver::quick(const CallSite& site) { return impl_->resolve(site, Impl::By::engine); }

Wait Resolver::full(const CallSite& site) {
  const std::lock_guard turn(impl_->slow_calls);
  return impl_->resolve(site, Impl::By::worker);
}

Access Resolver::access(const CallSite& site) { return impl_->access(site, Impl::By::engine); }

Access Resolver::full_access(const CallSite& site) {
  const std::lock_guard turn(impl_->slow_calls);
  return impl_->access(site, Impl::By::worker);
}

std::vector<Found> Resolver::scan(pid_t waiter, std::span<const Resource> resources, std::span<const pid_t> members,
                                  Time asked) {
  const std::lock_guard turn(impl_->slow_calls);
  std::vector<Found> out;
  const auto tgid = impl_->procfs.tgid(waiter);
  if (!tgid) return out;
  for (const Resource& resource : resources) {
    auto found = impl_->holders.find({waiter, *tgid}, resource, members, asked);
    if (found) out.push_back(std::move(*found));
  }
  return out;
}

void Resolver::doubt(const CallSite& site) { impl_->sets.doubt(site); }

bool Resolver::polls(pid_t tid) const { return impl_->pollers.polls(tid, impl_->time.now()); }

void Resolver::forget(pid_t tgid) {
  impl_->pollers.forget(tgid);
  impl_->sets.forget(tgid);
  const std::unique_lock lock(impl_->mutex, std::try_to_lock);
  if (!lock) return;
  std::erase_if(impl_->remembered, [&](const auto& entry) { return entry.second.site.tgid == tgid; });
  std::erase_if(impl_->futexes, [&](const auto& entry) { return entry.first.first == tgid; });
}

}  // namespace swapd::observe
