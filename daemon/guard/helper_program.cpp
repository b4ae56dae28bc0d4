#include "guard/helper_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "base/unix_address.h"

namespace swapd::daemon {

namespace {
// Above those where the program expects them: posix_spawn(3) would overwrite one with the other.
Result<Fd> out_of_the_way(int fd, const std::string& program) {
  Fd high(::fcntl(fd, F_DUPFD_CLOEXEC, OwnProgram::first_free));
  if (!high) return errno_error("starting " + program);
  return high;
}
}  // namespace

std::string find_own_program(const std::string& name) {
  std::error_code error;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const auto beside = here / name;
  if (::access(beside.c_str(), X_OK) == 0) return beside;
  return (here / "../libexec/swapd" / name).lexically_normal();
}

Result<OwnProgram> OwnProgram::open(const std::string& path) {
  const Fd opened(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!opened) return errno_error("starting " + path);
  auto file = out_of_the_way(opened.get(), path);  // the child opens it by this number
  if (!file) return std::move(file).error();
  return OwnProgram(path, std::move(file).value());
}

Result<pid_t> OwnProgram::start(std::vector<std::string> arguments, const std::vector<Placed>& placed) const {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  const std::unique_ptr<posix_spawn_file_actions_t, int (*)(posix_spawn_file_actions_t*)> end(
      &actions, ::posix_spawn_file_actions_destroy);
  std::vector<Fd> high;
  high.reserve(placed.size());
  for (const Placed& fd : placed) {
    auto moved = out_of_the_way(fd.ours, path_);
    if (!moved) return std::move(moved).error();
    ::posix_spawn_file_actions_adddup2(&actions, moved->get(), fd.theirs);
    high.push_back(std::move(moved).value());
  }
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const std::string file = "/proc/self/fd/" + std::to_string(file_.get());
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, file.c_str(), &actions, nullptr, argv.data(), environ);
  if (failed != 0) return Error(failed, "starting " + path_);
  return pid;
}

Result<Fd> start_as_unit(const std::string& socket) {
  const auto address = unix_address(socket);
  if (!address) return Error(ENAMETOOLONG, socket);
  Fd connection(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!connection || ::connect(connection.get(), address->get(), UnixAddress::size) != 0) return errno_error(socket);
  return connection;
}

}  // namespace swapd::daemon
