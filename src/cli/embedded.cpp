#include "cli/embedded.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/time.h"
#include "cli/failure.h"
#include "cli/program.h"
#include "sys/process/detached.h"

namespace swapd::cli {
namespace {

namespace fs = std::filesystem;

// In a place that only this user can write to, if there is one, and that a reboot clears.
Result<std::string> make_directory() {
  std::vector<std::string> places;
  if (::geteuid() == 0) places.emplace_back("/run");
  for (const char* name : {"XDG_RUNTIME_DIR", "TMPDIR"})
    if (const char* value = std::getenv(name); value != nullptr && *value == '/') places.emplace_back(value);
  places.emplace_back("/tmp");
  for (const std::string& place : places) {
    std::string path = place + "/swapd-XXXXXX";
    if (::mkdtemp(path.data()) != nullptr) return path;
  }
  return failure("cannot make a directory for a private swapd in " + places.front() + " or /tmp");
}

// Variables of the service that we may run in are not for it: it would answer the service manager in our name.
std::vector<std::string> environment() {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    bool ours = true;
    for (const std::string_view prefix : {"NOTIFY_SOCKET=", "LISTEN_", "WATCHDOG_", "SWAPD_SOCKET="})
      if (text.starts_with(prefix)) ours = false;
    if (ours) out.emplace_back(text);
  }
  return out;
}

std::string last_line(const std::string& file) {
  std::ifstream in(file);
  std::string last;
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) last = line;
  return last;
}

// One byte says ready; the end of the pipe, that it has died.
Status wait_until_ready(int fd, std::chrono::milliseconds timeout) {
  const SteadyClock clock;
  const Time deadline = clock.now() + timeout;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock.now());
    if (left.count() <= 0) return failure("a private swapd was not ready in time");
    pollfd waiting{fd, POLLIN, 0};
    const int n = ::poll(&waiting, 1, static_cast<int>(left.count()));
    if (n < 0 && errno != EINTR) return failure(errno_error("waiting for a private swapd").text());
    if (n <= 0) continue;
    char byte = 0;
    const ssize_t got = ::read(fd, &byte, 1);
    if (got == 1) return Done{};
    if (got == 0) return failure("a private swapd ended before it was ready");
  }
}

}  // namespace

Result<Embedded> start_embedded(const std::string& observe, std::chrono::milliseconds timeout) {
  const Result<std::string> swapd = find_swapd();
  if (!swapd) return swapd.error();
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) < 0) return failure(errno_error("cannot make a pipe").text());
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  const Result<std::string> directory = make_directory();
  if (!directory) return directory.error();
  Embedded embedded{*directory + "/swapd.sock", *directory};
  const std::string log = *directory + "/swapd.log";

  const auto give_up = [&](const std::string& line) {
    const std::string said = last_line(log);
    std::error_code ignored;
    fs::remove_all(*directory, ignored);
    return failure(line + (said.empty() ? "" : ": " + said));
  };
  const Fd log_fd(::open(log.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600));
  if (!log_fd) return give_up(errno_error("cannot write to " + *directory).text());

  const Status started = sys::start_detached(
      {*swapd,
       {*swapd, "--foreground", "--socket", embedded.socket, "--bus", "none", "--state-dir", *directory,
        "--exit-with-pid", std::to_string(::getpid()), "--ready-fd", "3", "--observe", observe},
       environment(),
       write_end.get(),
       log_fd.get()});
  if (!started) return give_up(started.error().text());
  write_end.reset();
  if (const Status ready = wait_until_ready(read_end.get(), timeout); !ready) return give_up(ready.error().context());
  return embedded;
}

}  // namespace swapd::cli
