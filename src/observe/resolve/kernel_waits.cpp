#include "observe/resolve/kernel_waits.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "sys/procfs/mountinfo.h"

namespace swapd::observe {

namespace {

template <typename See>
void each_line(std::string_view text, See see) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (!see(text.substr(0, end))) return;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// "[<0>] vfs_write+0x29c/0x4c0" → "vfs_write"
std::string_view function_of(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return {};
  line.remove_prefix(space + 1);
  return line.substr(0, line.find('+'));
}

bool any_in(std::string_view function, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts,
                             [&](std::string_view part) { return function.find(part) != std::string_view::npos; });
}

// Whatever waits for a device, or for nobody: the ends of waits for pages, buffers, bios, journals, the dirty limit.
bool of_device(std::string_view function) {
  return any_in(function, {"folio_wait", "wait_on_page", "wait_on_buffer", "bit_wait", "submit_bio_wait", "blk_",
                           "bio_", "io_schedule", "balance_dirty", "jbd2", "wait_transaction", "writeback", "rq_qos",
                           "wbt_", "throttle", "congestion", "read_swap", "swap_"});
}

bool of_nobody(std::string_view function) {
  return any_in(function, {"refrigerator", "freezer", "ptrace", "signal_stop", "seccomp", "sleep", "poll", "select",
                           "futex", "do_wait", "pipe_", "sock", "vfork", "coredump", "exit_to_user", "rcu"});
}

bool is_fuse(std::string_view type) {
  return type == "fuse" || type.starts_with("fuse.") || type.starts_with("fuseblk");
}

bool lies_in(std::string_view path, std::string_view point) {
  if (point == "/") return path.starts_with('/');
  return path.starts_with(point) && (path.size() == point.size() || path[point.size()] == '/');
}

}  // namespace

Stall stall_in(std::string_view stack, bool uninterruptible) {
  std::string_view innermost;
  bool fuse = false;
  each_line(stack, [&](std::string_view line) {
    const std::string_view function = function_of(line);
    if (innermost.empty()) innermost = function;
    if (function.starts_with("fuse_") || function.starts_with("__fuse_") || function == "request_wait_answer")
      fuse = true;
    return !fuse;
  });
  if (innermost.empty() || of_nobody(innermost)) return Stall::none;
  if (fuse && !any_in(innermost, {"fuse_dev_"})) return Stall::fuse;  // a daemon's own thread waits for requests
  if (!uninterruptible) return Stall::none;
  return of_device(innermost) ? Stall::device : Stall::lock;
}

bool preempted_in_call(std::string_view stack) {
  bool in_call = false;
  bool leaves = false;
  each_line(stack, [&](std::string_view line) {
    const std::string_view function = function_of(line);
    if (any_in(function, {"exit_to_user_mode"})) leaves = true;
    if (any_in(function, {"do_syscall_64", "entry_SYSCALL", "do_user_addr_fault", "do_int80"})) in_call = true;
    return true;
  });
  return in_call && !leaves;
}

std::optional<std::uint64_t> fuse_mount_of(std::string_view mountinfo, std::string_view path) {
  sys::MountEntry best;
  for (sys::MountEntry& mount : sys::parse_mountinfo(mountinfo))
    if (lies_in(path, mount.point) && mount.point.size() >= best.point.size()) best = std::move(mount);
  return is_fuse(best.type) ? std::optional(best.dev) : std::nullopt;
}

std::optional<std::uint64_t> only_fuse_mount(std::string_view mountinfo) {
  std::optional<std::uint64_t> only;
  for (const sys::MountEntry& mount : sys::parse_mountinfo(mountinfo)) {
    if (!is_fuse(mount.type)) continue;
    if (only && *only != mount.dev) return std::nullopt;
    only = mount.dev;
  }
  return only;
}

std::uint64_t fuse_connection_of(std::uint64_t dev) {
  constexpr unsigned minor_bits = 20;
  return (static_cast<std::uint64_t>(major(dev)) << minor_bits) | minor(dev);
}

std::string joined(std::string_view directory, std::string_view path) {
  std::vector<std::string_view> parts;
  const auto take = [&](std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('/'), text.size());
      const std::string_view part = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (part.empty() || part == ".") continue;
      if (part == "..") {
        if (!parts.empty()) parts.pop_back();
      } else {
        parts.push_back(part);
      }
    }
  };
  if (!path.starts_with('/')) take(directory);
  take(path);
  std::string out;
  for (const std::string_view part : parts) out.append("/").append(part);
  return out.empty() ? "/" : out;
}

FileArgs file_args(std::int32_t nr) {
  switch (nr) {
    case SYS_open:
    case SYS_creat:
    case SYS_stat:
    case SYS_lstat:
    case SYS_access:
    case SYS_readlink:
    case SYS_unlink:
    case SYS_rmdir:
    case SYS_mkdir:
    case SYS_mknod:
    case SYS_rename:
    case SYS_link:
    case SYS_truncate:
    case SYS_chdir:
    case SYS_chmod:
    case SYS_chown:
    case SYS_lchown:
    case SYS_utime:
    case SYS_utimes:
    case SYS_statfs:
    case SYS_getxattr:
    case SYS_lgetxattr:
    case SYS_setxattr:
    case SYS_lsetxattr:
    case SYS_listxattr:
    case SYS_llistxattr:
    case SYS_removexattr:
    case SYS_execve:
      return {.path = 0};
    case SYS_symlink:
      return {.path = 1};
    case SYS_openat:
    case SYS_openat2:
    case SYS_newfstatat:
    case SYS_statx:
    case SYS_faccessat:
    case SYS_faccessat2:
    case SYS_readlinkat:
    case SYS_unlinkat:
    case SYS_mkdirat:
    case SYS_mknodat:
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_linkat:
    case SYS_fchmodat:
    case SYS_fchownat:
    case SYS_utimensat:
    case SYS_execveat:
      return {.path = 1, .directory = 0};
    case SYS_symlinkat:
      return {.path = 2, .directory = 1};
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_sync_file_range:
    case SYS_syncfs:
    case SYS_fallocate:
    case SYS_ftruncate:
    case SYS_getdents64:
    case SYS_getdents:
    case SYS_fstat:
    case SYS_fstatfs:
    case SYS_lseek:
    case SYS_fchmod:
    case SYS_fchown:
    case SYS_fgetxattr:
    case SYS_fsetxattr:
    case SYS_flistxattr:
    case SYS_fremovexattr:
    case SYS_close:
    case SYS_fadvise64:
    case SYS_readahead:
    case SYS_copy_file_range:
      return {.fd = 0};
    default:
      return {};
  }
}

bool changes_memory(std::int32_t nr) {
  switch (nr) {
    case -1:  // a page fault
    case SYS_mmap:
    case SYS_munmap:
    case SYS_mprotect:
    case SYS_mremap:
    case SYS_madvise:
    case SYS_brk:
    case SYS_clone:
    case SYS_clone3:
    case SYS_vfork:
    case SYS_fork:
      return true;
    default:
      return false;
  }
}

void KernelWaits::was_long(const Resource& resource) {
  if (known_.size() >= max_known && !known_.contains(resource))
    forget(std::ranges::max_element(known_, {}, [](const auto& known) { return known.second; }));
  const auto [known, is_new] = known_.insert_or_assign(resource, 0);
  if (is_new && is_fuse_files(resource)) ++fuse_;
}

void KernelWaits::was_short(const Resource& resource) {
  if (is_fuse_files(resource)) return;  // short because its daemon was lent to; and no device ends these
  const auto known = known_.find(resource);
  if (known != known_.end() && ++known->second >= forgotten_after) forget(known);
}

void KernelWaits::forget(std::unordered_map<Resource, int>::iterator at) {
  if (is_fuse_files(at->first)) --fuse_;
  known_.erase(at);
}

}  // namespace swapd::observe
