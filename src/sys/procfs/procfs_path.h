// A path below /proc without allocation.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>

namespace swapd::sys {

// The thread, or 0, below which /proc has nothing, where it has gone. To look up the directory of one that has gone
// makes the kernel remove what it remembers of it; if a program that was doing so has just lost its CPU, the kernel
// tries until that program goes on (shrink_dcache_parent()), and a real-time thread would keep the CPU from it
// meanwhile, for up to a second. Asks only where `root` is this process's /proc. A thread that goes right after is
// looked up nevertheless.
[[nodiscard]] pid_t looked_up(const std::string& root, pid_t tid);

// ROOT/TID/NAME in a buffer of its own, ROOT/0/NAME where the thread has gone; too long a root gives a path that does
// not exist.
class ProcPath {
 public:
  ProcPath(const std::string& root, pid_t tid, std::string_view name) {
    add(root);
    add("/");
    add(looked_up(root, tid));
    add("/");
    add(name);
  }
  ProcPath(const std::string& root, pid_t tid, std::string_view name, int number) : ProcPath(root, tid, name) {
    add(number);
  }
  // The file of the one thread; some files of a process sum up all its threads.
  static ProcPath of_thread(const std::string& root, pid_t tid, std::string_view name) {
    ProcPath path(root, tid, "task/", tid);
    path.add("/");
    path.add(name);
    return path;
  }
  [[nodiscard]] const char* c_str() const { return text_.data(); }

 private:
  void add(std::string_view part) {
    const std::size_t room = text_.size() - 1 - used_;
    const std::size_t size = std::min(part.size(), room);
    std::copy_n(part.data(), size, text_.data() + used_);
    used_ += size;
    text_[used_] = 0;
  }
  void add(int number) {
    std::array<char, 16> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    add({digits.data(), static_cast<std::size_t>(end - digits.data())});
  }
  std::array<char, 256> text_{};
  std::size_t used_ = 0;
};

}  // namespace swapd::sys
