// The small programs beside swapd: where they are, and how they are started.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace swapd::daemon {

// Beside our own program, or in ../libexec/swapd.
[[nodiscard]] std::string find_own_program(const std::string& name);

// The program as it was when it was opened: another version may take its name.
class OwnProgram {
 public:
  // ENOENT: there is no such program.
  [[nodiscard]] static Result<OwnProgram> open(const std::string& path);

  struct Placed {
    int ours = -1;
    int theirs = -1;  // below first_free
  };
  // arguments: argv[0] included. Of our descriptors it has those alone that are not close-on-exec, and the placed ones.
  [[nodiscard]] Result<pid_t> start(std::vector<std::string> arguments, const std::vector<Placed>& placed) const;
  static constexpr int first_free = 16;

 private:
  OwnProgram(std::string path, Fd file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  Fd file_;
};

// systemd starts one for each connection to this socket (systemd.socket(5), Accept=): the connection.
[[nodiscard]] Result<Fd> start_as_unit(const std::string& socket);

}  // namespace swapd::daemon
