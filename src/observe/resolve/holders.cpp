#include "observe/resolve/holders.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>

#include "observe/resolve/families.h"
#include "observe/resolve/futex_owner.h"
#include "observe/resolve/kernel_waits.h"
#include "sys/procfs/sysv.h"

namespace swapd::observe {

namespace {

constexpr Duration member_age = std::chrono::milliseconds(50);
constexpr Duration stranger_age = std::chrono::seconds(1);
constexpr int rests_between_reads = 19;     // of all strangers' tables: times what one took
constexpr int believed_for_costs = 10;      // a process's threads: times what it took to read them
constexpr std::size_t max_threads = 3;      // of a process (docs/design.md, Model)
constexpr std::size_t max_looked_at = 512;  // threads of one process
constexpr std::size_t max_children = 256;
constexpr std::size_t max_guessed = 8;
constexpr std::size_t max_mapped = 256;  // processes whose mappings are read

bool contains(std::span<const pid_t> pids, pid_t pid) { return std::find(pids.begin(), pids.end(), pid) != pids.end(); }

}  // namespace

Holders::Holders(const sys::Procfs& procfs, const Descriptors& descriptors, const ProcessIds& ids, SocketPeers& peers,
                 const Clock& clock)
    : procfs_(procfs),
      clock_(clock),
      descriptors_(descriptors),
      ids_(ids),
      peers_(peers),
      fds_(procfs, clock),
      locks_(procfs, clock, fds_) {
  own_ipc_namespace_ = procfs_.namespace_inode(::getpid(), "ipc").value_or(0);
}

std::vector<ThreadId> Holders::threads_of(pid_t pid, pid_t but, Time asked) {
  const auto without = [&](std::vector<ThreadId> threads) {
    std::erase_if(threads, [&](ThreadId id) { return id.tid == but; });
    if (threads.size() > max_threads) threads.resize(max_threads);
    return threads;
  };
  const Time now = clock_.now();
  if (const Threads* known = threads_.find(pid);
      known != nullptr && (known->time >= asked || now < known->time + known->believed))
    return without(known->best);
  auto tids = procfs_.threads(pid).value_or({});
  if (tids.size() > max_looked_at) tids.resize(max_looked_at);
  std::vector<ThreadId> running;
  std::vector<ThreadId> others;  // the main thread first: procfs lists it so
  for (const pid_t tid : tids) {
    const auto st = procfs_.stat(tid);
    if (!st || st->state == 'Z' || st->state == 'X') continue;
    (st->state == 'R' ? running : others).push_back({tid, st->start_time});
  }
  running.insert(running.end(), others.begin(), others.end());
  if (running.size() > max_threads + 1) running.resize(max_threads + 1);  // `but` may be among them
  // A short list costs nothing to make anew.
  if (tids.size() <= max_threads) return without(running);
  threads_.get(pid, now) = {now, believed_for_costs * (clock_.now() - now), running};
  return without(std::move(running));
}

std::optional<Found> Holders::find(const Waiter& waiter, const Resource& resource, std::span<const pid_t> members,
                                   Time asked) {
  switch (resource.kind) {
    case ResourceKind::kernel:
      return in_kernel(waiter, resource, members, asked);
    case ResourceKind::signal:
      return siblings(waiter, resource, members);
    case ResourceKind::inotify:  // whoever changes a file
    case ResourceKind::unknown:
      return std::nullopt;
    case ResourceKind::kernel_work: {  // to be seen, and left alone where no policy made it a member
      const ThreadId thread = thread_of(resource);
      Found out{.resource = resource, .evidence = Evidence::holder, .threads = {}, .unenrolled = {}};
      (contains(members, thread.tid) ? out.threads : out.unenrolled).push_back(thread);
      return out;
    }
    case ResourceKind::sysv_msg:
    case ResourceKind::sysv_sem:
    case ResourceKind::child_exit:
    case ResourceKind::futex: {
      const auto pids = named(waiter, resource);
      if (!pids) return std::nullopt;
      if (resource.kind == ResourceKind::futex) {  // these are threads, of a process that is managed as the waiter is
        Found out{.resource = resource, .evidence = Evidence::owner, .threads = {}, .unenrolled = {}};
        for (const pid_t tid : *pids) {
          const auto id = procfs_.thread_id(tid);
          const bool managed = id && contains(members, procfs_.tgid(tid).value_or(0));
          if (id) (managed ? out.threads : out.unenrolled).push_back(*id);
        }
        if (!out.threads.empty() || !out.unenrolled.empty()) return out;
        return with_threads(waiter, resource, Evidence::holder, sharing(resource, members), {}, asked);
      }
      Pids managed;
      Pids others;
      for (const pid_t pid : *pids) (contains(members, pid) ? managed : others).push_back(pid);
      const bool child = resource.kind == ResourceKind::child_exit;
      return with_threads(waiter, resource, child ? Evidence::child : Evidence::holder, managed, others, asked);
    }
    default:
      break;
  }
  const Evidence evidence = is_lock(resource.kind) ? Evidence::owner : Evidence::holder;
  if (resource.kind == ResourceKind::socket && only_own_endpoint(waiter, resource))
    return with_threads(waiter, resource, evidence, {}, {}, asked);
  if (resource.kind == ResourceKind::record_lock) locks_.read_request(waiter.tid, waiter.tgid, resource);
  const Duration since_asked = std::max(Duration::zero(), clock_.now() - asked);
  Pids managed = among(resource, members, std::max(member_age, since_asked));
  const auto nobody_else = [&] { return managed.empty() || managed == Pids{waiter.tgid}; };
  // What was opened before the question is not in a table that is older.
  if (since_asked < member_age && nobody_else()) managed = among(resource, members, since_asked);
  Pids others;
  if (nobody_else()) {
    Pids rest = all_processes(asked);
    Pids sorted(members.begin(), members.end());
    std::ranges::sort(sorted);
    std::erase_if(rest, [&](pid_t pid) { return std::ranges::binary_search(sorted, pid); });
    others = among_servers(resource, members, since_asked);
    if (others.empty()) others = among(resource, rest, std::max(stranger_age, since_asked));
    if (others.empty() && resource.kind == ResourceKind::socket)
      others = among_strangers_anew(resource, rest, since_asked);
    if (resource.kind == ResourceKind::socket) remember_servers(others);
    // Nobody at all has this socket any more: whoever is at the other end now, the kernel must tell.
    if (others.empty() && managed.empty() && resource.kind == ResourceKind::socket) peers_.drop(resource.ids[0]);
    if (others.empty() && managed.empty() && resource.kind == ResourceKind::record_lock)
      for (const pid_t pid : locks_.named_owners(resource)) (contains(members, pid) ? managed : others).push_back(pid);
  }
  Found out = with_threads(waiter, resource, evidence, managed, others, asked);
  if (nobody_else()) guess_behind(waiter, others, members, asked, out);
  return out;
}

// A socket that was accepted a moment ago is in no table that is older. To read the tables of all processes takes long,
// so the worker spends a twentieth of its time on it at most; a server that was found once is among servers_ after
// that.
Holders::Pids Holders::among_strangers_anew(const Resource& resource, const Pids& rest, Duration max_age) {
  const Time begun = clock_.now();
  if (max_age >= stranger_age || begun < read_anew_from_) return {};
  Pids found = among(resource, rest, max_age);
  const Time now = clock_.now();
  read_anew_from_ = now + rests_between_reads * (now - begun);
  return found;
}

// A process that waits for a signal waits perhaps for a sibling, which wants a CPU: as PostgreSQL's do, which fork for
// each client and wake each other. Nothing tells which, nor that it is one.
std::optional<Found> Holders::siblings(const Waiter& waiter, const Resource& signal, std::span<const pid_t> members) {
  const Family family = family_of(procfs_, waiter.tgid);
  const auto children = family.valid() ? procfs_.children(family.parent.tid) : Error(ESRCH, "");
  if (!children) return std::nullopt;
  Found out{.resource = signal, .evidence = Evidence::guess, .threads = {}, .unenrolled = {}};
  std::size_t looked = 0;
  for (const pid_t pid : *children) {
    if (out.threads.size() >= max_guessed || ++looked > max_children) break;
    if (pid == waiter.tgid || !contains(members, pid)) continue;
    const auto stat = procfs_.stat(pid);
    if (!stat || stat->state != 'R' || observe::family_of(procfs_, pid) != family) continue;
    out.threads.push_back({pid, stat->start_time});
  }
  return out;
}

// A FUSE mount's daemon; of a file, the threads that were preempted in a call and have the file open; of memory, those
// of the process. Where there are several of these it is a guess.
Found Holders::in_kernel(const Waiter& waiter, const Resource& resource, std::span<const pid_t> members, Time asked) {
  Found out{.resource = resource, .evidence = Evidence::holder, .threads = {}, .unenrolled = {}};
  const Duration since_asked = std::max(Duration::zero(), clock_.now() - asked);
  const auto has_it = [&](pid_t pid, Duration max_age) {
    if (is_memory(resource)) return pid == thread_of(resource).tid;
    return is_fuse_files(resource)
               ? serves(pid, resource.ids[0], max_age)
               : !fds_.find(pid, max_age,
                            [&](const auto& i) { return i.dev == resource.ids[0] && i.ino == resource.ids[1]; })
                      .empty();
  };
  const auto take = [&](pid_t pid, std::vector<ThreadId>& to) {
    for (const ThreadId thread : threads_of(pid, waiter.tid, asked)) {
      if (!is_fuse_files(resource)) {
        const auto stat = procfs_.stat(thread.tid);
        const auto stack = procfs_.kernel_stack(thread.tid);
        if (!stat || stat->state != 'R' || !stack || !preempted_in_call(*stack)) continue;
      }
      to.push_back(thread);
    }
  };
  for (const pid_t pid : members)
    if (has_it(pid, std::max(member_age, since_asked))) take(pid, out.threads);
  if (out.threads.empty() && !is_memory(resource)) {
    for (const pid_t pid : all_processes(asked))
      if (!contains(members, pid) && has_it(pid, std::max(stranger_age, since_asked))) take(pid, out.unenrolled);
  }
  if (!is_fuse_files(resource) && out.threads.size() > 1) out.evidence = Evidence::guess;
  return out;
}

// Whether the process has the /dev/fuse of this mount open. Older kernels do not tell which mount one is of.
bool Holders::serves(pid_t pid, std::uint64_t dev, Duration max_age) {
  constexpr unsigned misc_major = 10;
  constexpr unsigned fuse_minor = 229;
  const auto is_fuse_device = [](const sys::FdIdentity& i) {
    return (i.mode & S_IFMT) == S_IFCHR && i.rdev == makedev(misc_major, fuse_minor);
  };
  return std::ranges::any_of(fds_.find(pid, max_age, is_fuse_device), [&](const FdCache::Entry& entry) {
    const auto numbers = procfs_.fd_numbers(pid, entry.fd);
    return numbers && (numbers->fuse_connection < 0 ||
                       static_cast<std::uint64_t>(numbers->fuse_connection) == fuse_connection_of(dev));
  });
}

// Whoever can write to the futex's memory can wake who waits there, as the signaller of a condition variable does.
Holders::Pids Holders::sharing(const Resource& futex, std::span<const pid_t> members) const {
  Pids out;
  const auto [dev, ino] = file_of(futex);
  for (const pid_t pid : members.first(std::min(members.size(), max_mapped)))
    if (is_shared_futex(futex) ? procfs_.maps_file(pid, dev, ino) : pid == thread_of(futex).tid) out.push_back(pid);
  return out;
}

Found Holders::with_threads(const Waiter& waiter, const Resource& resource, Evidence evidence, const Pids& managed,
                            const Pids& others, Time asked) {
  Found out{.resource = resource, .evidence = evidence, .threads = {}, .unenrolled = {}};
  for (const pid_t pid : managed) {
    const auto threads = threads_of(pid, waiter.tid, asked);
    out.threads.insert(out.threads.end(), threads.begin(), threads.end());
  }
  for (const pid_t pid : others) {
    const auto threads = threads_of(pid, waiter.tid, asked);
    out.unenrolled.insert(out.unenrolled.end(), threads.begin(), threads.end());
  }
  return out;
}

// Those that the kernel names without descriptors: processes, but threads for a futex.
std::optional<Holders::Pids> Holders::named(const Waiter& waiter, const Resource& resource) {
  switch (resource.kind) {
    case ResourceKind::sysv_msg:
    case ResourceKind::sysv_sem: {
      // The last users: weak evidence, but there is no descriptor to look for. Elsewhere than in our own IPC namespace
      // the same id is another object.
      if (resource.ids[0] != own_ipc_namespace_) return std::nullopt;
      const int id = static_cast<int>(resource.ids[1]);
      auto pids =
          (resource.kind == ResourceKind::sysv_sem ? sys::sysv_sem_pids(id) : sys::sysv_msg_pids(id)).value_or({});
      std::erase_if(pids, [&](pid_t pid) { return pid == waiter.tgid || !procfs_.stat(pid).ok(); });
      return pids;
    }
    case ResourceKind::child_exit: {
      const ThreadId process = thread_of(resource);
      if (is_any_child(resource)) {
        auto children = procfs_.children(process.tid).value_or({});
        if (children.size() > max_children) children.resize(max_children);
        return children;
      }
      const auto child = procfs_.thread_id(process.tid);
      return child && *child == process ? Pids{process.tid} : Pids{};
    }
    case ResourceKind::futex: {
      const auto call = procfs_.syscall(waiter.tid);
      if (!call || !call->in_call || call->nr != SYS_futex) return Pids{};
      return futex_owners(procfs_, ids_, waiter.tid, waiter.tgid, futex_op(call->args[1]), call->args[0], call->args[2],
                          is_shared_futex(resource));
    }
    default:
      return std::nullopt;
  }
}

Holders::Pids Holders::among(const Resource& resource, std::span<const pid_t> pids, Duration max_age) {
  Pids out;
  for (const pid_t pid : pids) {
    if (holds(resource, pid, max_age)) out.push_back(pid);
  }
  return out;
}

bool Holders::holds(const Resource& resource, pid_t pid, Duration max_age) {
  const auto& ids = resource.ids;
  const auto type = [](const sys::FdIdentity& identity) { return identity.mode & S_IFMT; };
  switch (resource.kind) {
    case ResourceKind::socket:
      return !fds_.find(pid, max_age, [&](const auto& i) { return type(i) == S_IFSOCK && i.ino == ids[0]; }).empty();
    case ResourceKind::posix_mq:
      return !fds_.find(pid, max_age, [&](const auto& i) { return i.dev == ids[0] && i.ino == ids[1]; }).empty();
    case ResourceKind::flock:
    case ResourceKind::record_lock:
      return locks_.holds(resource, pid, max_age);
    case ResourceKind::pipe:
    case ResourceKind::fifo:
      for (const auto& entry :
           fds_.find(pid, max_age, [&](const auto& i) { return type(i) == S_IFIFO && i.ino == ids[0]; })) {
        const auto found = descriptors_.look(pid, entry.fd, entry.identity);
        const auto end = found ? own_end(*found, ids[1] == 1 ? Direction::out : Direction::in) : std::nullopt;
        const auto access = procfs_.fd_access(pid, entry.fd);
        if (end == resource && access && (*access == O_RDWR || *access == (ids[1] == 1 ? O_WRONLY : O_RDONLY)))
          return true;
      }
      return false;
    case ResourceKind::eventfd:
      return has_eventfd(pid, ids[0], max_age);
    case ResourceKind::pty: {
      for (const auto& entry : fds_.find(pid, max_age, [&](const auto& i) { return type(i) == S_IFCHR; })) {
        const auto found = descriptors_.look(pid, entry.fd, entry.identity);
        if (found && own_end(*found, Direction::in) == resource) return true;
      }
      return false;
    }
    default:
      return false;
  }
}

bool Holders::has_eventfd(pid_t pid, std::uint64_t id, Duration max_age) {
  const auto number_of = [&](int fd, const Result<Descriptor>& found) -> std::optional<std::uint64_t> {
    if (fd < 0 || !found || found->type != Descriptor::Type::eventfd) return std::nullopt;
    return found->number;
  };
  Eventfds& known = eventfds_.get(pid, clock_.now());
  for (;;) {
    const bool is_new = clock_.now() - known.time >= max_age;
    if (is_new) {
      known.time = clock_.now();
      known.fds.clear();
      for (const auto& entry : fds_.find(pid, Duration::zero(), [](const auto& i) { return (i.mode & S_IFMT) == 0; }))
        if (const auto number = number_of(entry.fd, descriptors_.look(pid, entry.fd, entry.identity)))
          known.fds.emplace(*number, entry.fd);
    }
    const auto found = known.fds.find(id);
    if (found == known.fds.end()) return false;
    if (number_of(found->second, descriptors_.look(pid, found->second)) == id) return true;
    if (is_new) return false;
    max_age = Duration::zero();  // the number is another descriptor's by now
  }
}

const Holders::Pids& Holders::all_processes(Time asked) {
  if (processes_read_ <= asked) {
    processes_read_ = clock_.now();
    processes_ = procfs_.processes();
  }
  return processes_;
}

// Whether the waiter waits on a socket of its own because no peer is known: then those who have it too are not
// providers.
bool Holders::only_own_endpoint(const Waiter& waiter, const Resource& resource) {
  if (!holds(resource, waiter.tgid, member_age)) return false;
  const auto peers = peers_.look(waiter.tgid, resource.ids[0]).peers;
  return !peers || peers->inodes == std::vector{resource.ids[0]};
}

}  // namespace swapd::observe
