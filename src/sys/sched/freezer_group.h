// A group of the cgroup freezer for one process: below the group that it is in, so that it keeps all that holds there
// (Documentation/admin-guide/cgroup-v1/freezer-subsystem.rst; cgroup-v2.rst, cgroup.freeze). v1's freezer where there
// is one, else v2.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace swapd::sys {

class FreezerGroup {
 public:
  static constexpr std::string_view prefix = "swapd-freeze-";
  // By its name.
  [[nodiscard]] static bool is_own(std::string_view path);

  // The place of a group for this process: a directory that is not there yet. ENODEV: no hierarchy that freezes, or the
  // process is in a part of it that is not to be seen here. cgroups: the directory where hierarchies are mounted.
  [[nodiscard]] static Result<std::string> place_for(pid_t tgid, const std::string& proc_root = "/proc",
                                                     const std::string& cgroups = "/sys/fs/cgroup");
  // Makes it there, and moves the process into it.
  [[nodiscard]] static Result<FreezerGroup> make(const std::string& directory, pid_t tgid);
  // One that is there already. EINVAL: such a directory is none of ours.
  [[nodiscard]] static Result<FreezerGroup> found(const std::string& directory);
  FreezerGroup(FreezerGroup&& other) noexcept;
  FreezerGroup& operator=(FreezerGroup&& other) noexcept;
  FreezerGroup(const FreezerGroup&) = delete;
  FreezerGroup& operator=(const FreezerGroup&) = delete;
  ~FreezerGroup();

  // Thaws, puts those that are in it into the group above, and removes it. False: a process, or a group of another
  // program, is in it still.
  [[nodiscard]] bool dissolve();

  [[nodiscard]] Status freeze() const;
  [[nodiscard]] Status thaw() const;
  // Puts every other process (what the process has forked) into the group above. False: the process itself is not in
  // it.
  [[nodiscard]] bool keep_only(pid_t tgid) const;
  // True if another program has made groups below it: they would stand still with it.
  [[nodiscard]] bool has_groups() const;
  [[nodiscard]] const std::string& directory() const { return directory_; }
  // The file to which thawed() is written to end the freeze.
  [[nodiscard]] std::string control_file() const;

 private:
  explicit FreezerGroup(std::string directory);
  std::string directory_;  // empty: moved from
  bool v2_ = false;
};

// The text that ends a freeze, written to this control file.
[[nodiscard]] std::string_view thawed(std::string_view control_file);

}  // namespace swapd::sys
