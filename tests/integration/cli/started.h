// A process that a test starts: its exit status, its output, and what cli_reporter found out about itself.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace swapd::cli {

class Started {
 public:
  // `prepare` runs in the child before execve: system calls only. Output goes to files in `directory`.
  Started(std::vector<std::string> arguments, std::string directory, const std::function<void()>& prepare = {});
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;
  ~Started();  // kills it where it has not ended

  [[nodiscard]] pid_t pid() const { return pid_; }
  // Waits, at most half a minute. The exit status; -SIGNAL where one ended it; -1000 where it does not end.
  [[nodiscard]] int wait();
  [[nodiscard]] std::string out() const;
  [[nodiscard]] std::string err() const;

 private:
  std::string directory_;
  pid_t pid_ = -1;
  int number_;
};

[[nodiscard]] std::string content(const std::string& file);
// A fresh directory for one test, that everybody may write to; removed at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();
  [[nodiscard]] const std::string& path() const { return path_; }
  // A copy of a program that every user can execute: the build may be where others cannot look.
  [[nodiscard]] std::string for_all(const std::string& program) const;

 private:
  std::string path_;
};

}  // namespace swapd::cli
