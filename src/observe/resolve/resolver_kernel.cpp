// Waits inside the kernel: for a file's or a process's lock, and for a FUSE daemon (kernel_waits.h).
#include <fcntl.h>
#include <limits.h>

#include "observe/resolve/resolver_impl.h"

namespace swapd::observe {

namespace {

constexpr std::size_t path_chunk = 256;
constexpr std::uint64_t page = 4096;

// The target may change it meanwhile; then it was another path.
std::string path_at(pid_t tid, std::uint64_t address) {
  std::string out;
  std::array<char, path_chunk> chunk;
  while (out.size() < PATH_MAX) {
    const std::uint64_t size = std::min<std::uint64_t>(chunk.size(), page - address % page);
    if (!sys::Procfs::read_memory(tid, address, chunk.data(), size)) return {};
    const std::string_view got(chunk.data(), size);
    out += got.substr(0, got.find('\0'));
    if (got.find('\0') != std::string_view::npos) return out;
    address += size;
  }
  return {};
}

}  // namespace

Stall Resolver::Impl::stall(pid_t tid) const {
  const auto stat = procfs.stat(tid);
  if (!stat || (stat->state != 'D' && stat->state != 'S')) return Stall::none;
  const auto stack = procfs.kernel_stack(tid);
  return stack ? stall_in(*stack, stat->state == 'D') : Stall::none;
}

void Resolver::Impl::wait_for(Wait& wait, const Resource& resource) {
  add(wait.awaited, resource);
  const std::lock_guard lock(mutex);
  if (!kernel_waits.knows(resource)) kernel_waits.was_long(resource);
}

// [engine] Of what a wait was a long one lately.
bool Resolver::Impl::add_known(Wait& wait, const Resource& resource) {
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock || !kernel_waits.knows(resource)) return false;
  add(wait.awaited, resource);
  return true;
}

bool Resolver::Impl::knows_kernel_waits(bool of_fuse) {
  const std::unique_lock lock(mutex, std::try_to_lock);
  return lock && (of_fuse ? kernel_waits.knows_fuse() : !kernel_waits.empty());
}

void Resolver::Impl::wait_on_file(Wait& wait, const CallSite& site, std::uint64_t dev, std::uint64_t ino, By by) {
  if (by == By::engine) {
    if (!add_known(wait, fuse_files_of(dev))) add_known(wait, kernel_lock_of({dev, ino}));
    return;
  }
  const Stall found = stall(site.tid);
  if (found == Stall::fuse) wait_for(wait, fuse_files_of(dev));
  if (found == Stall::lock) wait_for(wait, kernel_lock_of({dev, ino}));
}

void Resolver::Impl::wait_in_call(Wait& wait, const CallSite& site, By by) {
  const FileArgs args = file_args(site.nr);
  if (by == By::engine && !knows_kernel_waits(args.path >= 0)) return;
  if (args.fd >= 0) {
    if (const auto file = procfs.fd_identity(site.tid, fd_of(site, static_cast<unsigned>(args.fd))))
      wait_on_file(wait, site, file->dev, file->ino, by);
    return;
  }
  if (args.path >= 0 && by == By::engine) {
    wait.complete = false;
    guess(site, wait);
    return;
  }
  const auto own = procfs.thread_id(site.tgid);
  if (!own) return;
  const Resource process = memory_of(*own);
  if (by == By::engine) {
    if (changes_memory(site.nr)) add_known(wait, process);
    return;
  }
  if (args.path >= 0) {
    if (const auto mount = fuse_mount(site, args)) wait_for(wait, fuse_files_of(*mount));
    if (!wait.awaited.empty()) {
      remember(site, wait);
      return;
    }
  }
  const Stall found = stall(site.tid);
  if (found == Stall::fuse) {
    const auto mounts = procfs.mountinfo(site.tgid);
    const auto only = mounts ? only_fuse_mount(*mounts) : std::nullopt;
    wait_for(wait, only ? fuse_files_of(*only) : process);
  } else if (found == Stall::lock) {
    wait_for(wait, process);
  }
}

// [worker] The path is compared with what is mounted and never looked up: that would be to ask the daemon.
std::optional<std::uint64_t> Resolver::Impl::fuse_mount(const CallSite& site, const FileArgs& args) const {
  const auto mounts = procfs.mountinfo(site.tgid);
  if (!mounts || mounts->find(" fuse") == std::string::npos) return std::nullopt;
  const std::string path = path_at(site.tid, site.args.at(static_cast<std::size_t>(args.path)));
  std::string directory;
  if (!path.starts_with('/')) {
    const int at = args.directory >= 0 ? fd_of(site, static_cast<unsigned>(args.directory)) : AT_FDCWD;
    const auto begin = at == AT_FDCWD ? procfs.cwd(site.tid) : procfs.fd_link(site.tid, at);
    if (!begin) return std::nullopt;
    directory = *begin;
  }
  return fuse_mount_of(*mounts, joined(directory, path));
}

void Resolver::ended(const Resource& kernel, Duration lasted) {
  const std::unique_lock lock(impl_->mutex, std::try_to_lock);
  if (!lock) return;
  if (lasted < short_kernel_wait) impl_->kernel_waits.was_short(kernel);
  if (lasted >= long_kernel_wait) impl_->kernel_waits.was_long(kernel);
}

}  // namespace swapd::observe
