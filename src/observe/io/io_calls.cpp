#include "observe/io/io_calls.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <climits>

namespace swapd::observe {
namespace {

constexpr IoCall reads(std::int32_t nr, IoAmount amount, std::uint8_t at, std::uint8_t number_at = 0) {
  return {.nr = nr, .in_arg = 0, .amount = amount, .at = at, .number_at = number_at};
}
constexpr IoCall writes(std::int32_t nr, IoAmount amount, std::uint8_t at, std::uint8_t number_at = 0) {
  return {.nr = nr, .out_arg = 0, .amount = amount, .at = at, .number_at = number_at};
}
constexpr IoCall told_by(IoMoved moved, IoCall call) {
  call.moved = moved;
  return call;
}
constexpr IoCall uncounted(IoCall call) { return told_by(IoMoved::asked, call); }
constexpr IoCall between(std::int32_t nr, std::uint8_t in, std::uint8_t out, std::uint8_t at) {
  return {.nr = nr, .in_arg = in, .out_arg = out, .amount = IoAmount::count, .at = at};
}
constexpr IoCall sends_to(std::int32_t nr) {
  IoCall call = writes(nr, IoAmount::count, 2);
  call.address_arg = 4;
  return uncounted(call);
}

constexpr IoCall from(std::uint8_t position, IoCall call) {
  call.position_arg = position;
  return call;
}
constexpr IoCall from_pointed(std::uint8_t position, IoCall call) {
  call.position_is_pointed_to = true;
  return from(position, call);
}

constexpr std::uint8_t here = IoCall::working_directory;
constexpr IoCall looks(std::int32_t nr, std::uint8_t directory, std::uint8_t path) {
  return {.nr = nr, .in_arg = directory, .amount = IoAmount::entry, .at = path};
}
constexpr IoCall changes(std::int32_t nr, std::uint8_t directory, std::uint8_t path) {
  return {.nr = nr, .out_arg = directory, .amount = IoAmount::entry, .at = path};
}

constexpr std::array calls{
    reads(SYS_read, IoAmount::count, 2),
    writes(SYS_write, IoAmount::count, 2),
    from(3, reads(SYS_pread64, IoAmount::count, 2)),
    writes(SYS_pwrite64, IoAmount::count, 2),
    reads(SYS_readv, IoAmount::vector, 1, 2),
    writes(SYS_writev, IoAmount::vector, 1, 2),
    from_pointed(2, between(SYS_sendfile, 1, 0, 3)),
    sends_to(SYS_sendto),
    uncounted(reads(SYS_recvfrom, IoAmount::count, 2)),
    uncounted(writes(SYS_sendmsg, IoAmount::message, 1)),
    uncounted(reads(SYS_recvmsg, IoAmount::message, 1)),
    writes(SYS_fsync, IoAmount::none, 0),
    writes(SYS_fdatasync, IoAmount::none, 0),
    from(1, told_by(IoMoved::disk, reads(SYS_readahead, IoAmount::count, 2))),
    from_pointed(1, uncounted(between(SYS_splice, 0, 2, 4))),
    from(3, reads(SYS_preadv, IoAmount::vector, 1, 2)),
    writes(SYS_pwritev, IoAmount::vector, 1, 2),
    uncounted(reads(SYS_recvmmsg, IoAmount::messages, 1, 2)),
    writes(SYS_syncfs, IoAmount::none, 0),
    uncounted(writes(SYS_sendmmsg, IoAmount::messages, 1, 2)),
    from_pointed(1, between(SYS_copy_file_range, 0, 2, 4)),
    from(3, reads(SYS_preadv2, IoAmount::vector, 1, 2)),
    writes(SYS_pwritev2, IoAmount::vector, 1, 2),
    uncounted({.nr = SYS_io_submit, .amount = IoAmount::submits, .at = 2, .number_at = 1}),
    told_by(IoMoved::disk, {.nr = SYS_io_uring_enter, .amount = IoAmount::ring, .at = 1}),
    looks(SYS_getdents64, 0, IoCall::no_arg),
    looks(SYS_getdents, 0, IoCall::no_arg),
    looks(SYS_newfstatat, 0, 1),
    looks(SYS_statx, 0, 1),
    looks(SYS_stat, here, 0),
    looks(SYS_lstat, here, 0),
    looks(SYS_openat, 0, 1),
    looks(SYS_openat2, 0, 1),
    looks(SYS_open, here, 0),
    looks(SYS_access, here, 0),
    looks(SYS_faccessat, 0, 1),
    looks(SYS_faccessat2, 0, 1),
    looks(SYS_readlink, here, 0),
    looks(SYS_readlinkat, 0, 1),
    looks(SYS_getxattr, here, 0),
    looks(SYS_lgetxattr, here, 0),
    looks(SYS_listxattr, here, 0),
    looks(SYS_llistxattr, here, 0),
    changes(SYS_creat, here, 0),
    changes(SYS_unlink, here, 0),
    changes(SYS_unlinkat, 0, 1),
    changes(SYS_rmdir, here, 0),
    changes(SYS_mkdir, here, 0),
    changes(SYS_mkdirat, 0, 1),
    changes(SYS_mknod, here, 0),
    changes(SYS_mknodat, 0, 1),
    changes(SYS_rename, here, 0),
    changes(SYS_renameat, 0, 1),
    changes(SYS_renameat2, 0, 1),
    changes(SYS_link, here, 0),
    changes(SYS_linkat, 0, 1),
    changes(SYS_symlink, here, 1),
    changes(SYS_symlinkat, 1, 2),
    changes(SYS_chmod, here, 0),
    changes(SYS_fchmod, 0, IoCall::no_arg),
    changes(SYS_fchmodat, 0, 1),
    changes(SYS_chown, here, 0),
    changes(SYS_lchown, here, 0),
    changes(SYS_fchown, 0, IoCall::no_arg),
    changes(SYS_fchownat, 0, 1),
    changes(SYS_utime, here, 0),
    changes(SYS_utimes, here, 0),
    changes(SYS_futimesat, 0, 1),
    changes(SYS_utimensat, 0, 1),
    changes(SYS_truncate, here, 0),
    changes(SYS_ftruncate, 0, IoCall::no_arg),
    changes(SYS_fallocate, 0, IoCall::no_arg),
    changes(SYS_setxattr, here, 0),
    changes(SYS_lsetxattr, here, 0),
    changes(SYS_fsetxattr, 0, IoCall::no_arg),
    changes(SYS_removexattr, here, 0),
    changes(SYS_lremovexattr, here, 0),
    changes(SYS_fremovexattr, 0, IoCall::no_arg),
};

constexpr std::size_t max_nr = 512;
constexpr auto by_number = [] {
  std::array<std::int8_t, max_nr> out{};
  for (auto& one : out) one = -1;
  for (std::size_t i = 0; i < calls.size(); ++i)
    out.at(static_cast<std::size_t>(calls.at(i).nr)) = static_cast<std::int8_t>(i);
  return out;
}();

// One system call moves no more (MAX_RW_COUNT in include/linux/fs.h).
constexpr std::int64_t max_moved = 0x7ffff000;
constexpr std::size_t max_parts = 64;  // of an iovec that are looked at; the rest is as large on average

std::int64_t bounded(std::uint64_t size) {
  return static_cast<std::int64_t>(std::clamp<std::uint64_t>(size, 1, max_moved));
}

Result<std::uint64_t> sum(std::uint64_t address, std::uint64_t number, const ReadTarget& read) {
  if (number == 0 || address == 0) return std::uint64_t{0};
  std::array<iovec, max_parts> parts;
  const std::size_t looked = std::min<std::uint64_t>(number, parts.size());
  if (Status got = read(address, parts.data(), looked * sizeof(iovec)); !got) return std::move(got).error();
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < looked; ++i) bytes += std::min<std::uint64_t>(parts.at(i).iov_len, max_moved);
  return looked == number ? bytes : bytes / looked * std::min<std::uint64_t>(number, IOV_MAX);
}

Result<std::uint64_t> message(std::uint64_t address, const ReadTarget& read) {
  msghdr header{};
  if (Status got = read(address, &header, sizeof header); !got) return std::move(got).error();
  return sum(reinterpret_cast<std::uint64_t>(header.msg_iov), header.msg_iovlen, read);
}

Result<std::uint64_t> messages(std::uint64_t address, std::uint64_t number, const ReadTarget& read) {
  if (number == 0) return std::uint64_t{0};
  constexpr std::uint64_t looked_at = 8;
  std::uint64_t looked = 0, bytes = 0;
  for (; looked < std::min(number, looked_at); ++looked) {
    const auto one = message(address + looked * sizeof(mmsghdr), read);
    if (!one && looked == 0) return one;
    if (!one) break;  // the kernel moves those before it
    bytes += *one;
  }
  return bytes / looked * std::min<std::uint64_t>(number, UIO_MAXIOV);
}

}  // namespace

const IoCall* io_call(std::int32_t nr) {
  if (nr < 0 || static_cast<std::size_t>(nr) >= by_number.size()) return nullptr;
  const std::int8_t at = by_number[static_cast<std::size_t>(nr)];
  return at < 0 ? nullptr : &calls[static_cast<std::size_t>(at)];
}

std::vector<sys::TrapRule> io_rules(const IoTraps& traps) {
  std::vector<sys::TrapRule> out;
  for (const IoCall& call : calls)
    if (traps.entries || call.amount != IoAmount::entry) out.push_back({.nr = call.nr, .condition = {}});
  if (!traps.rings) out.push_back({.nr = SYS_io_uring_setup, .condition = {}, .refuse_with = ENOSYS});
  return out;
}

bool changes_entry(const IoCall& call, const std::array<std::uint64_t, 6>& args) {
  if (call.nr == SYS_open) return (args[1] & O_CREAT) != 0;
  if (call.nr == SYS_openat) return (args[2] & O_CREAT) != 0;
  return call.out_arg != IoCall::no_arg;
}

bool is_of_disk(const IoCall& call, const std::array<std::uint64_t, 6>& args, const ReadTarget& read) {
  if (call.at == IoCall::no_arg) return true;
  std::array<char, 6> begin{};
  // Its end may be the end of what it has.
  if (!read(args.at(call.at), begin.data(), begin.size()) && !read(args.at(call.at), begin.data(), 1)) return true;
  const std::string_view path(begin.data(), begin.size());
  return begin[0] != 0 && !path.starts_with("/proc/") && !path.starts_with("/sys/") && !path.starts_with("/dev/");
}

Result<std::int64_t> asked(const IoCall& call, const std::array<std::uint64_t, 6>& args, const ReadTarget& read) {
  Result<std::uint64_t> bytes = std::uint64_t{1};
  switch (call.amount) {
    case IoAmount::none:
    case IoAmount::entry:
    case IoAmount::submits:
    case IoAmount::ring:
      break;
    case IoAmount::count:
      bytes = args.at(call.at);
      break;
    case IoAmount::vector:
      bytes = sum(args.at(call.at), args.at(call.number_at), read);
      break;
    case IoAmount::message:
      bytes = message(args.at(call.at), read);
      break;
    case IoAmount::messages:
      bytes = messages(args.at(call.at), static_cast<std::uint32_t>(args.at(call.number_at)), read);
      break;
  }
  if (!bytes) return std::move(bytes).error();
  return bounded(*bytes);
}

std::optional<std::int64_t> position(const IoCall& call, const std::array<std::uint64_t, 6>& args,
                                     const ReadTarget& read) {
  if (call.position_arg == IoCall::no_arg) return std::nullopt;
  auto at = static_cast<std::int64_t>(args.at(call.position_arg));
  if (call.position_is_pointed_to) {
    const std::uint64_t address = args.at(call.position_arg);
    if (address == 0 || !read(address, &at, sizeof at)) return std::nullopt;
  }
  return at < 0 ? std::nullopt : std::optional(at);
}

Result<std::vector<IoRequest>> requests(const IoCall& call, const std::array<std::uint64_t, 6>& args,
                                        const ReadTarget& read) {
  std::vector<IoRequest> out;
  const std::uint64_t number = std::min<std::uint64_t>(args.at(call.number_at), max_parts);
  std::array<std::uint64_t, max_parts> pointers;
  if (number == 0) return out;
  if (Status got = read(args.at(call.at), pointers.data(), number * sizeof(std::uint64_t)); !got)
    return std::move(got).error();
  for (const std::uint64_t pointer : std::span(pointers).first(number)) {
    iocb one{};
    if (!read(pointer, &one, sizeof one)) break;  // the kernel takes those before it
    IoRequest request{.fd = static_cast<int>(one.aio_fildes), .bytes = bounded(one.aio_nbytes)};
    switch (one.aio_lio_opcode) {
      case IOCB_CMD_PREAD:
        break;
      case IOCB_CMD_PWRITE:
        request.writes = true;
        break;
      case IOCB_CMD_PREADV:
      case IOCB_CMD_PWRITEV: {
        request.writes = one.aio_lio_opcode == IOCB_CMD_PWRITEV;
        const auto bytes = sum(one.aio_buf, one.aio_nbytes, read);
        request.bytes = bytes ? bounded(*bytes) : 1;
        break;
      }
      default:
        continue;  // fsync, poll: they move nothing
    }
    out.push_back(request);
  }
  return out;
}

std::size_t sent_to(const IoCall& call, const std::array<std::uint64_t, 6>& args, const ReadTarget& read,
                    std::span<std::byte> to) {
  std::uint64_t address = 0, size = 0;
  if (call.address_arg != IoCall::no_arg) {
    address = args.at(call.address_arg);
    size = args.at(call.address_arg + 1U);
  } else if (call.out_arg != IoCall::no_arg &&
             (call.amount == IoAmount::message || call.amount == IoAmount::messages)) {
    msghdr header{};  // a mmsghdr begins with one
    if (!read(args.at(call.at), &header, sizeof header)) return 0;
    address = reinterpret_cast<std::uint64_t>(header.msg_name);
    size = header.msg_namelen;
  }
  size = std::min<std::uint64_t>(size, to.size());
  if (address == 0 || size == 0 || !read(address, to.data(), size)) return 0;
  return size;
}

bool does_not_wait(const sys::Notification& notification) {
  switch (notification.nr) {
    case SYS_sendto:
    case SYS_sendmmsg:
      return (notification.args[3] & MSG_DONTWAIT) != 0;
    case SYS_sendmsg:
      return (notification.args[2] & MSG_DONTWAIT) != 0;
    case SYS_splice:
      return (notification.args[5] & SPLICE_F_NONBLOCK) != 0;
    default:
      return false;
  }
}

}  // namespace swapd::observe
