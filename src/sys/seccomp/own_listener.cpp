#include "sys/seccomp/own_listener.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/fd.h"

namespace swapd::sys {
namespace {

constexpr std::size_t nearby = 64;  // bytes of code in which the arguments of one call are set
constexpr std::uint32_t max_flags = 0x40;

template <typename T>
std::optional<T> read_at(std::string_view text, std::size_t at) {
  T value{};
  if (at > text.size() || text.size() - at < sizeof value) return std::nullopt;
  std::memcpy(&value, text.data() + at, sizeof value);
  return value;
}

// The place of a constant that an instruction moves into a register: B8+r, or C7 C0+r.
bool is_moved(std::string_view code, std::size_t at) {
  if (at < 1) return false;
  const auto before = static_cast<unsigned char>(code[at - 1]);
  if (before >= 0xb8 && before <= 0xbf) return true;
  return at >= 2 && before >= 0xc0 && before <= 0xc7 && static_cast<unsigned char>(code[at - 2]) == 0xc7;
}

bool asks_nearby(std::string_view code, std::size_t at) {
  bool mode = false, flag = false;
  const std::size_t end = std::min(at + nearby, code.size());
  for (std::size_t i = at > nearby ? at - nearby : 0; i < end; ++i) {
    const auto value = read_at<std::uint32_t>(code, i);
    if (!value || !is_moved(code, i)) continue;
    mode = mode || *value == SECCOMP_SET_MODE_FILTER;
    flag = flag || (*value < max_flags && (*value & SECCOMP_FILTER_FLAG_NEW_LISTENER) != 0);
  }
  return mode && flag;
}

std::string_view bytes_of(const std::uint32_t& number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

bool code_asks(std::string_view code) {
  constexpr std::uint32_t call = SYS_seccomp, receive = SECCOMP_IOCTL_NOTIF_RECV;
  bool calls = false;
  for (std::size_t at = code.find(bytes_of(call)); at != std::string_view::npos;
       at = code.find(bytes_of(call), at + 1)) {
    if (!is_moved(code, at)) continue;
    if (asks_nearby(code, at)) return true;
    calls = true;
  }
  for (std::size_t at = calls ? code.find(bytes_of(receive)) : std::string_view::npos; at != std::string_view::npos;
       at = code.find(bytes_of(receive), at + 1))
    if (is_moved(code, at)) return true;
  return false;
}

}  // namespace

bool asks_for_listener(std::span<const std::byte> image) {
  const std::string_view text(reinterpret_cast<const char*>(image.data()), image.size());
  const auto header = read_at<Elf64_Ehdr>(text, 0);
  if (!header || !text.starts_with(std::string_view(ELFMAG, SELFMAG)) || header->e_ident[EI_CLASS] != ELFCLASS64 ||
      header->e_machine != EM_X86_64 || header->e_phentsize != sizeof(Elf64_Phdr))
    return false;
  for (std::size_t i = 0; i < header->e_phnum; ++i) {
    const auto segment = read_at<Elf64_Phdr>(text, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment || segment->p_type != PT_LOAD || (segment->p_flags & PF_X) == 0) continue;
    if (segment->p_offset > text.size()) continue;
    if (code_asks(text.substr(segment->p_offset, segment->p_filesz))) return true;
  }
  return false;
}

bool file_asks_for_listener(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size <= 0) return false;
  const auto size = static_cast<std::size_t>(info.st_size);
  void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapped == MAP_FAILED) return false;
  const bool asks = asks_for_listener({static_cast<const std::byte*>(mapped), size});
  ::munmap(mapped, size);
  return asks;
}

TrapRule own_listener_rule() {
  constexpr std::uint64_t flag = SECCOMP_FILTER_FLAG_NEW_LISTENER;
  return {.nr = SYS_seccomp, .condition = TrapRule::Condition{.arg = 1, .mask = flag, .values = {flag}}};
}

}  // namespace swapd::sys
