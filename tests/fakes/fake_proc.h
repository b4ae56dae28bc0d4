// A /proc in a temporary directory, with threads that exist only there.
#pragma once

#include <stdlib.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace swapd::fakes {

class FakeProc {
 public:
  FakeProc() {
    std::string pattern = (std::filesystem::temp_directory_path() / "swapd-proc-XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) root_ = pattern;
  }
  FakeProc(const FakeProc&) = delete;
  FakeProc& operator=(const FakeProc&) = delete;
  ~FakeProc() { std::filesystem::remove_all(root_); }

  struct Thread {
    std::uint64_t start_time = 1;
    std::uint32_t uid = 0;
    char state = 'S';
    bool kernel = false;
    pid_t parent = 1;
    std::string comm = "name";
  };
  void add(pid_t tid, const Thread& thread) const {
    const std::filesystem::path process = std::filesystem::path(root_) / std::to_string(tid);
    const std::filesystem::path task = process / "task" / std::to_string(tid);
    std::filesystem::create_directories(task);
    std::string stat = std::to_string(tid) + " (" + thread.comm + ") " + thread.state + " " +
                       std::to_string(thread.parent) + " 1 1 0 -1 ";
    stat += thread.kernel ? "2097152" : "0";  // PF_KTHREAD
    stat += " 0 0 0 0 0 0 0 0 20 0 1 0 " + std::to_string(thread.start_time);
    for (int field = 23; field <= 52; ++field) stat += " 0";
    const std::string uid = std::to_string(thread.uid);
    const std::string status = "Name:\t" + thread.comm + "\nUid:\t" + uid + "\t" + uid + "\t" + uid + "\t" + uid + "\n";
    for (const std::filesystem::path& folder : {process, task}) {
      std::ofstream(folder / "stat") << stat << '\n';
      std::ofstream(folder / "status") << status;
      std::ofstream(folder / "comm") << thread.comm << '\n';
    }
  }
  void remove(pid_t tid) const { std::filesystem::remove_all(std::filesystem::path(root_) / std::to_string(tid)); }
  [[nodiscard]] const std::string& root() const { return root_; }

 private:
  std::string root_;
};

}  // namespace swapd::fakes
