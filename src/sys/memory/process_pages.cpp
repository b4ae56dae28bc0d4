#include "sys/memory/process_pages.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "sys/kernel_file.h"
#include "sys/memory/memory_stat.h"
#include "sys/process/pidfd.h"

namespace swapd::sys {

namespace {

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t is_swapped = std::uint64_t{1} << 62;  // pagemap, Documentation/admin-guide/mm/pagemap.rst

std::string of_process(pid_t tgid, const char* file) { return "/proc/" + std::to_string(tgid) + "/" + file; }

}  // namespace

namespace parse {

namespace {

std::optional<std::uint64_t> hexadecimal(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (bad != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// "7f1200000000-7f1200021000 rw-p 00000000 00:00 0"
std::optional<MemoryRange> private_writable(std::string_view line) {
  const auto begin = hexadecimal(line);
  if (!begin || !line.starts_with('-')) return std::nullopt;
  line.remove_prefix(1);
  const auto end = hexadecimal(line);
  if (!end || *end <= *begin || line.size() < 5 || line[0] != ' ' || line[2] != 'w' || line[4] != 'p')
    return std::nullopt;
  return MemoryRange{.begin = *begin, .end = *end};
}

bool begins_a_mapping(std::string_view line) {
  const std::size_t dash = line.find('-'), space = line.find(' ');
  return dash != std::string_view::npos && dash < space && space != std::string_view::npos;
}

}  // namespace

std::vector<MemoryRange> anonymous_ranges(std::string_view smaps) {
  std::vector<MemoryRange> out;
  std::optional<MemoryRange> range;
  const auto keep = [&] {
    if (range && range->resident + range->swapped > 0) out.push_back(*range);
  };
  while (!smaps.empty()) {
    const std::size_t end = std::min(smaps.find('\n'), smaps.size());
    const std::string_view line = smaps.substr(0, end);
    smaps.remove_prefix(std::min(end + 1, smaps.size()));
    if (begins_a_mapping(line)) {
      keep();
      range = private_writable(line);
    } else if (range && line.starts_with("Anonymous:")) {
      range->resident = number_of(line, "Anonymous").value_or(0);
    } else if (range && line.starts_with("Swap:")) {
      range->swapped = number_of(line, "Swap").value_or(0);
    }
  }
  keep();
  return out;
}

}  // namespace parse

Result<AnonymousSize> anonymous_size(pid_t tgid) {
  const auto text = read_text(of_process(tgid, "status"));
  if (!text) return text.error();
  return AnonymousSize{.resident = parse::number_of(*text, "RssAnon").value_or(0),
                       .swapped = parse::number_of(*text, "VmSwap").value_or(0)};
}

Result<ProcessPages> ProcessPages::open(pid_t tgid) {
  auto pidfd = open_pidfd(tgid);
  if (!pidfd) return pidfd.error();
  Fd pagemap(::open(of_process(tgid, "pagemap").c_str(), O_RDONLY | O_CLOEXEC));
  if (!pagemap) return errno_error("pagemap of process " + std::to_string(tgid));
  ProcessPages made(tgid, std::move(*pidfd), std::move(pagemap));
  if (Status looked = made.look(); !looked) return looked.error();
  return made;
}

Status ProcessPages::look() {
  const auto text = read_text(of_process(tgid_, "smaps"));
  if (!text) return text.error();
  ranges_ = parse::anonymous_ranges(*text);
  at_ = 0;
  return Done{};
}

// The next part of a mapping that has such pages; a large mapping in several.
std::optional<MemoryRange> ProcessPages::next(std::int64_t MemoryRange::*what) {
  while (at_ < ranges_.size() && ranges_[at_].*what == 0) ++at_;
  if (at_ == ranges_.size()) return std::nullopt;
  MemoryRange& range = ranges_[at_];
  MemoryRange part = range;
  part.end = std::min(range.end, range.begin + step);
  range.begin = part.end;
  if (range.begin == range.end) ++at_;
  return part;
}

Status ProcessPages::advise(const MemoryRange& range, int advice) const {
  const iovec one{.iov_base = reinterpret_cast<void*>(range.begin), .iov_len = range.end - range.begin};
  if (::syscall(SYS_process_madvise, pidfd_.get(), &one, 1, advice, 0) >= 0) return Done{};
  // A part of it is locked, or not mapped any more: the others have gone their way.
  if (errno == EINVAL || errno == ENOMEM) return Done{};
  return errno_error("advice on memory of process " + std::to_string(tgid_));
}

Result<bool> ProcessPages::put_out() {
  const auto part = next(&MemoryRange::resident);
  if (!part) return false;
  if (Status advised = advise(*part, MADV_PAGEOUT); !advised) return advised.error();
  return at_ < ranges_.size();
}

// One byte of each page that is in swap. A page that cannot be had is left out.
Status ProcessPages::touch_swapped(const MemoryRange& range) const {
  std::array<std::uint64_t, step / page> entries;
  const std::uint64_t pages = (range.end - range.begin) / page;
  const ssize_t got = ::pread(pagemap_.get(), entries.data(), pages * sizeof entries[0],
                              static_cast<off_t>(range.begin / page * sizeof entries[0]));
  if (got < 0) return errno_error("pagemap of process " + std::to_string(tgid_));
  const auto count = static_cast<std::uint64_t>(got) / sizeof entries[0];
  std::array<char, IOV_MAX> bytes;
  std::array<iovec, IOV_MAX> remote;
  std::size_t wanted = 0;
  const auto read = [&]() -> Status {
    for (std::size_t done = 0; done < wanted;) {
      const iovec local{.iov_base = bytes.data(), .iov_len = wanted - done};
      const ssize_t had = ::process_vm_readv(tgid_, &local, 1, remote.data() + done, wanted - done, 0);
      if (had < 0 && errno != EFAULT) return errno_error("memory of process " + std::to_string(tgid_));
      done += had > 0 ? static_cast<std::size_t>(had) : 1;
    }
    wanted = 0;
    return Done{};
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    if ((entries[i] & is_swapped) == 0) continue;
    remote[wanted++] = {.iov_base = reinterpret_cast<void*>(range.begin + i * page), .iov_len = 1};
    if (wanted == remote.size())
      if (Status done = read(); !done) return done;
  }
  return read();
}

Result<bool> ProcessPages::bring_back() {
  const auto part = next(&MemoryRange::swapped);
  if (!part) return false;
  if (Status advised = advise(*part, MADV_WILLNEED); !advised) return advised.error();
  if (Status touched = touch_swapped(*part); !touched) return touched.error();
  return at_ < ranges_.size();
}

}  // namespace swapd::sys
