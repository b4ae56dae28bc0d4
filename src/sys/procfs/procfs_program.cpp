// Whose a process is, in which namespaces, and which program it runs.
#include <limits.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "sys/procfs/procfs.h"
#include "sys/procfs/procfs_parse.h"
#include "sys/procfs/procfs_path.h"

namespace swapd::sys {

namespace {

Result<std::string> program_at(const char* link) {
  std::array<char, PATH_MAX> file{};
  const ssize_t size = ::readlink(link, file.data(), file.size());
  if (size < 0) return errno_error(link);
  return parse::program_file({file.data(), static_cast<std::size_t>(size)});
}

}  // namespace

Result<std::uint32_t> Procfs::user(pid_t tid, std::size_t which) const {
  const auto numbers = status_numbers(tid, "Uid");
  if (!numbers) return numbers.error();
  if (numbers->size() <= which) return Error(EPROTO, "status");
  return static_cast<std::uint32_t>((*numbers)[which]);
}

Result<std::uint32_t> Procfs::real_uid(pid_t tid) const { return user(tid, 0); }

Result<std::uint32_t> Procfs::uid(pid_t tid) const { return user(tid, 1); }

Result<std::uint64_t> Procfs::namespace_inode(pid_t tid, const char* ns) const {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "ns/%s", ns);
  // "ipc:[4026531839]": the text costs less than half of what stat(2) of the link does.
  std::array<char, 64> buffer{};
  const ssize_t size = ::readlink(ProcPath(root_, tid, name.data()).c_str(), buffer.data(), buffer.size());
  if (size < 0) return Error(errno, "readlink");
  const auto inode = parse::namespace_inode({buffer.data(), static_cast<std::size_t>(size)});
  if (!inode) return Error(EPROTO, "ns");
  return *inode;
}

Result<std::string> Procfs::exe(pid_t pid) const { return program_at(ProcPath(root_, pid, "exe").c_str()); }

Result<std::string> Procfs::own_exe() const { return program_at((root_ + "/self/exe").c_str()); }

}  // namespace swapd::sys
