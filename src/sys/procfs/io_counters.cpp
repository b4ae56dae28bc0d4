#include "sys/procfs/io_counters.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "sys/procfs/procfs_path.h"

namespace swapd::sys {

IoCounters between(const IoCounters& before, const IoCounters& now) {
  return {.read_chars = now.read_chars - before.read_chars,
          .written_chars = now.written_chars - before.written_chars,
          .calls = now.calls - before.calls,
          .read_bytes = now.read_bytes - before.read_bytes,
          .written_bytes = now.written_bytes - before.written_bytes};
}

bool goes_backwards(const IoCounters& before, const IoCounters& now) {
  return now.read_chars < before.read_chars || now.written_chars < before.written_chars ||
         now.read_bytes < before.read_bytes || now.written_bytes < before.written_bytes;
}

namespace parse {

Result<IoCounters> io_counters(std::string_view text) {
  IoCounters out;
  std::uint64_t writes = 0;
  const std::pair<std::string_view, std::uint64_t*> wanted[] = {
      {"rchar: ", &out.read_chars}, {"wchar: ", &out.written_chars},   {"syscr: ", &out.calls},
      {"syscw: ", &writes},         {"read_bytes: ", &out.read_bytes}, {"write_bytes: ", &out.written_bytes}};
  std::size_t found = 0;
  while (!text.empty() && found < std::size(wanted)) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    for (const auto& [key, number] : wanted) {
      if (!line.starts_with(key)) continue;
      const auto read = std::from_chars(line.data() + key.size(), line.data() + line.size(), *number);
      if (read.ec != std::errc() || read.ptr != line.data() + line.size()) return Error(EPROTO, "io");
      ++found;
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  if (found != std::size(wanted)) return Error(EPROTO, "io");
  out.calls += writes;
  return out;
}

}  // namespace parse

Result<ThreadIo> ThreadIo::open(const std::string& proc_root, pid_t tid) {
  Fd file(::open(ProcPath::of_thread(proc_root, tid, "io").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return errno_error("io");
  return ThreadIo(std::move(file));
}

Result<IoCounters> process_io(const std::string& proc_root, pid_t tgid) {
  Fd file(::open(ProcPath(proc_root, tgid, "io").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return errno_error("io");
  return ThreadIo(std::move(file)).read();
}

Result<IoCounters> ThreadIo::read() const {
  std::array<char, 512> buffer;
  const ssize_t size = ::pread(file_.get(), buffer.data(), buffer.size(), 0);
  if (size < 0) return errno_error("io");
  return parse::io_counters({buffer.data(), static_cast<std::size_t>(size)});
}

}  // namespace swapd::sys
