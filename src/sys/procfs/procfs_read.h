// How files and directories of /proc are read (procfs.cpp, procfs_fd.cpp). Errors are made without allocation: what
// they name fits the small string buffer.
#pragma once

#include <dirent.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace swapd::sys {

// errno's.
[[nodiscard]] inline Error failed(const char* what) { return {errno, what}; }
[[nodiscard]] Result<Fd> open_file(const char* path);
// The start of a file, into the buffer. procfs makes the text anew for each read from offset 0, and hands out all of a
// text of one record at once (seq_file, single_open()).
[[nodiscard]] Result<std::string_view> read_start(int fd, std::span<char> buffer);
[[nodiscard]] Result<std::string_view> read_start(const char* path, std::span<char> buffer);
[[nodiscard]] Result<std::string> read_all(const char* path);

// The entries of a directory that are numbers. error: 0, or why there are none.
template <typename Number>
[[nodiscard]] std::vector<Number> numbered_entries(const char* path, int& error, std::size_t most = SIZE_MAX) {
  std::vector<Number> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(path), &::closedir);
  error = dir ? 0 : errno;
  if (!dir) return out;
  while (const dirent* entry = out.size() < most ? ::readdir(dir.get()) : nullptr) {
    Number number{};
    const std::string_view name(entry->d_name);
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (bad == std::errc{} && end == name.data() + name.size()) out.push_back(number);
  }
  return out;
}

}  // namespace swapd::sys
