#include "sys/procfs/procfs_parse.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <charconv>
#include <tuple>

namespace swapd::sys::parse {

namespace {

// Takes words and numbers off the front of a text.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  [[nodiscard]] std::string_view rest() const { return text_; }
  void skip_space() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\t')) text_.remove_prefix(1);
  }
  std::string_view word() {
    skip_space();
    const std::size_t end = std::min(text_.find_first_of(" \t\n"), text_.size());
    const std::string_view out = text_.substr(0, end);
    text_.remove_prefix(end);
    return out;
  }
  bool skip(std::string_view prefix) {
    if (!text_.starts_with(prefix)) return false;
    text_.remove_prefix(prefix.size());
    return true;
  }
  template <typename T>
  bool number(T& out, int base = 10) {
    skip_space();
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), out, base);
    if (error != std::errc{}) return false;
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return true;
  }

 private:
  std::string_view text_;
};

// Calls visit with each line, without its newline.
template <typename Visit>
void each_line(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// "fe:00:9977919": major and minor in hex, inode in decimal.
bool device_inode(Cursor& in, std::uint64_t& dev, std::uint64_t& ino) {
  unsigned device_major = 0;
  unsigned device_minor = 0;
  if (!in.number(device_major, 16) || !in.skip(":") || !in.number(device_minor, 16) || !in.skip(":")) return false;
  dev = makedev(device_major, device_minor);
  return in.number(ino);
}

}  // namespace

std::optional<ProcStat> stat(std::string_view text) {
  // comm is whatever the program calls itself, brackets and newlines included: it ends at the last ')'.
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  ProcStat out;
  const std::string_view comm = text.substr(open + 1, close - open - 1);
  std::copy_n(comm.data(), std::min(comm.size(), out.comm.size() - 1), out.comm.data());
  Cursor in(text.substr(close + 1));
  const std::string_view state = in.word();
  if (state.size() != 1) return std::nullopt;
  out.state = state.front();
  std::int64_t skipped = 0;
  std::uint64_t flags = 0;
  if (!in.number(out.ppid) || !in.number(out.group) || !in.number(out.session)) return std::nullopt;
  if (!in.number(out.terminal) || !in.number(out.foreground) || !in.number(flags)) return std::nullopt;
  out.exiting = (flags & 0x4) != 0;       // linux/sched.h: PF_EXITING
  out.kernel = (flags & 0x200000) != 0;   // PF_KTHREAD
  out.ring_worker = (flags & 0x10) != 0;  // PF_IO_WORKER
  if (!in.number(skipped) || !in.number(skipped) || !in.number(out.major_faults)) return std::nullopt;
  for (int field = 13; field <= 21; ++field) {
    if (in.word().empty()) return std::nullopt;
  }
  if (!in.number(out.start_time)) return std::nullopt;
  for (int field = 23; field <= 38; ++field) in.word();
  if (!in.number(out.processor)) out.processor = -1;
  return out;
}

std::optional<SyscallState> syscall(std::string_view text) {
  SyscallState out;
  if (text.starts_with("running")) {
    out.running = true;
    return out;
  }
  Cursor in(text);
  if (!in.number(out.nr)) return std::nullopt;
  if (out.nr < 0) {
    out.nr = -1;
    return out;
  }
  for (std::uint64_t& arg : out.args) {
    in.skip_space();
    if (!in.skip("0x") || !in.number(arg, 16)) return std::nullopt;
  }
  out.in_call = true;
  std::uint64_t stack = 0;
  in.skip_space();
  out.compat = in.skip("0x") && in.number(stack, 16) && stack != 0 && stack < 1ULL << 32;
  return out;
}

FdNumbers fd_numbers(std::string_view text) {
  FdNumbers out;
  each_line(text, [&](std::string_view line) {
    Cursor in(line);
    if (in.skip("eventfd-id:")) {
      if (!in.number(out.eventfd_id)) out.eventfd_id = -1;
    } else if (in.skip("tty-index:")) {
      if (!in.number(out.tty_index)) out.tty_index = -1;
    } else if (in.skip("Pid:")) {
      if (!in.number(out.pid)) out.pid = -1;
    } else if (in.skip("sigmask:")) {
      out.signalfd = true;
    } else if (in.skip("fuse_connection:")) {
      if (!in.number(out.fuse_connection)) out.fuse_connection = -1;
    }
  });
  return out;
}

FdInfo fdinfo(std::string_view text) {
  FdInfo out;
  const FdNumbers numbers = fd_numbers(text);
  out.eventfd_id = numbers.eventfd_id;
  out.tty_index = numbers.tty_index;
  out.pid = numbers.pid;
  out.signalfd = numbers.signalfd;
  each_line(text, [&](std::string_view line) {
    Cursor in(line);
    if (in.skip("pos:")) {
      if (!in.number(out.pos)) out.pos = 0;
    } else if (in.skip("flags:")) {
      if (!in.number(out.flags, 8)) out.flags = 0;
    } else if (line.starts_with("tfd:")) {
      if (const auto target = epoll_target(line)) out.epoll.push_back(*target);
    } else if (in.skip("lock:")) {
      if (const auto found = lock(in.rest())) out.locks.push_back(*found);
    }
  });
  return out;
}

std::optional<LockLine> lock(std::string_view line) {
  Cursor in(line);
  std::uint64_t number = 0;
  if (!in.number(number) || !in.skip(":")) return std::nullopt;
  LockLine out;
  in.skip_space();
  out.waiting = in.skip("->");
  const std::string_view type = in.word();
  if (type == "FLOCK") {
    out.type = LockLine::Type::flock;
  } else if (type == "POSIX") {
    out.type = LockLine::Type::posix;
  } else if (type == "OFDLCK") {
    out.type = LockLine::Type::ofd;
  } else if (type == "LEASE" || type == "DELEG") {
    out.type = LockLine::Type::lease;
  }
  in.word();  // ADVISORY, BREAKING …
  const std::string_view access = in.word();
  if (access.empty()) return std::nullopt;
  out.write = access == "WRITE" || access == "RW";
  if (!in.number(out.pid)) return std::nullopt;
  in.skip_space();
  if (in.skip("<none>")) return std::nullopt;  // a lock whose file is gone
  if (!device_inode(in, out.dev, out.ino) || !in.number(out.first)) return std::nullopt;
  in.skip_space();
  if (!in.rest().starts_with("EOF") && !in.number(out.last)) return std::nullopt;
  return out;
}

std::vector<LockLine> locks(std::string_view text) {
  std::vector<LockLine> out;
  each_line(text, [&](std::string_view line) {
    if (const auto found = lock(line)) out.push_back(*found);
  });
  return out;
}

std::optional<EpollTarget> epoll_target(std::string_view line) {
  Cursor in(line);
  EpollTarget out;
  if (!in.skip("tfd:") || !in.number(out.fd)) return std::nullopt;
  in.skip_space();
  if (!in.skip("events:") || !in.number(out.events, 16)) return std::nullopt;
  const std::size_t at = in.rest().rfind("ino:");
  if (at == std::string_view::npos) return out;  // before Linux 4.13 the line ends here
  in = Cursor(in.rest().substr(at));
  if (!in.skip("ino:") || !in.number(out.ino, 16)) return std::nullopt;
  in.skip_space();
  std::uint32_t device = 0;
  if (!in.skip("sdev:") || !in.number(device, 16)) return std::nullopt;
  // The kernel's own encoding: 12 bits of major number, 20 of minor (include/linux/kdev_t.h).
  out.dev = makedev(device >> 20, device & 0xfffffU);
  return out;
}

std::optional<Mapping> mapping(std::string_view line) {
  Cursor in(line);
  Mapping out;
  if (!in.number(out.start, 16) || !in.skip("-") || !in.number(out.end, 16)) return std::nullopt;
  const std::string_view permissions = in.word();
  if (permissions.size() != 4) return std::nullopt;
  out.shared = permissions[3] == 's';
  out.writable = permissions[1] == 'w';
  if (!in.number(out.offset, 16)) return std::nullopt;
  unsigned device_major = 0;
  unsigned device_minor = 0;
  if (!in.number(device_major, 16) || !in.skip(":") || !in.number(device_minor, 16)) return std::nullopt;
  out.dev = makedev(device_major, device_minor);
  if (!in.number(out.ino)) return std::nullopt;
  return out;
}

std::optional<Procfs::Autogroup> autogroup(std::string_view text) {
  Cursor in(text);
  Procfs::Autogroup out;
  if (!in.skip("/autogroup-") || !in.number(out.id)) return std::nullopt;
  in.skip_space();
  if (!in.skip("nice") || !in.number(out.nice)) return std::nullopt;
  return out;
}

std::vector<std::int64_t> status_numbers(std::string_view text, std::string_view key) {
  std::vector<std::int64_t> out;
  each_line(text, [&](std::string_view line) {
    Cursor in(line);
    if (!out.empty() || !in.skip(key) || !in.skip(":")) return;
    for (std::int64_t number = 0; in.number(number);) out.push_back(number);
  });
  return out;
}

std::string program_file(std::string_view link) {
  constexpr std::string_view deleted = " (deleted)";
  if (link.ends_with(deleted)) link.remove_suffix(deleted.size());
  return std::string(link);
}

std::optional<std::uint64_t> capabilities(std::string_view text) {
  std::optional<std::uint64_t> found;
  each_line(text, [&](std::string_view line) {
    Cursor in(line);
    std::uint64_t bits = 0;
    if (!found && in.skip("CapEff:") && in.number(bits, 16)) found = bits;
  });
  return found;
}

std::optional<Interruption> interruption(std::string_view text) {
  std::optional<std::uint64_t> own, shared, blocked, tracer;
  each_line(text, [&](std::string_view line) {
    const std::tuple<std::string_view, std::optional<std::uint64_t>*, int> wanted[] = {
        {"TracerPid:", &tracer, 10}, {"SigPnd:", &own, 16}, {"ShdPnd:", &shared, 16}, {"SigBlk:", &blocked, 16}};
    for (const auto& [key, found, base] : wanted) {
      Cursor in(line);
      std::uint64_t read = 0;
      if (!*found && in.skip(key) && in.number(read, base)) *found = read;
    }
  });
  if (!own || !shared || !blocked || !tracer || *tracer > INT32_MAX) return std::nullopt;
  return Interruption{
      .signals = (*own | *shared) & ~*blocked, .pending = *own | *shared, .tracer = static_cast<pid_t>(*tracer)};
}

std::string unit_cgroup(std::string_view text) {
  std::string_view found;
  each_line(text, [&](std::string_view line) {
    std::string_view path = line.substr(std::min(line.find(':'), line.size()));
    const bool v2 = line.starts_with("0::");
    if (!v2 && !path.starts_with(":name=systemd:")) return;
    path.remove_prefix(v2 ? 2 : std::string_view(":name=systemd:").size());
    if (!v2 || found.empty()) found = path;
  });
  return std::string(found);
}

std::optional<std::uint64_t> namespace_inode(std::string_view text) {
  Cursor in(text.substr(std::min(text.find('['), text.size())));
  std::uint64_t inode = 0;
  if (!in.skip("[") || !in.number(inode) || !in.skip("]")) return std::nullopt;
  return inode;
}

std::vector<pid_t> pids(std::string_view text) {
  Cursor in(text);
  std::vector<pid_t> out;
  for (pid_t pid = 0; in.number(pid);) out.push_back(pid);
  return out;
}

}  // namespace swapd::sys::parse
