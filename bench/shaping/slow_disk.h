// A disk of known speed: ext4 on a loop device. This machine's own would be too fast to be short of.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "harness/process.h"
#include "shaping/throttled_file.h"

namespace swapd::bench {

class SlowDisk {
 public:
  // What is short: reading, for the group of processes that swapbench and all that it starts are in (by the cgroup
  // controller blkio of v1 or io of v2); or reading and writing together, whoever does it (throttled_file.h).
  enum class Budget : std::uint8_t { reading, both };
  // size: of its file, beside the temporary directory; rate: bytes a second. Needs root and mkfs.ext4.
  [[nodiscard]] static Result<std::unique_ptr<SlowDisk>> make(std::uint64_t size, std::uint64_t rate,
                                                              Budget budget = Budget::reading);
  ~SlowDisk();
  SlowDisk(const SlowDisk&) = delete;
  SlowDisk& operator=(const SlowDisk&) = delete;

  [[nodiscard]] const std::string& path() const { return mount_; }  // where it is mounted
  [[nodiscard]] const std::string& device() const { return loop_; }
  [[nodiscard]] Status write_file(const std::string& name, std::uint64_t size) const;
  // Nothing of it is in memory any more. Nobody may have a file open there.
  [[nodiscard]] Status forget();
  // Everybody in our group, and who is started from now on, has so much together. False: as fast as it goes.
  [[nodiscard]] Status throttle(bool on);
  // The directory of a group beside ours whose members read and write so much a second, each.
  [[nodiscard]] Result<std::string> limited_group(std::uint64_t rate);

 private:
  explicit SlowDisk(TempDir dir) : dir_(std::move(dir)) {}
  [[nodiscard]] Status set_up(std::uint64_t size, Budget budget);
  [[nodiscard]] Status attach();
  [[nodiscard]] Status join_group();

  TempDir dir_;
  std::unique_ptr<ThrottledFile> file_;  // where both are short
  std::string image_, mount_, loop_, number_, group_, group_before_, limited_group_;
  std::uint64_t rate_ = 0;
  Fd loop_fd_;
  bool v2_ = false;
  bool mounted_ = false;
};

}  // namespace swapd::bench
