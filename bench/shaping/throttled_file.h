// A file that is read and written at so many bytes a second in all, one request after another, as by a disk. Served
// with libfuse, for want of a block device whose throttle counts both ways together.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

struct fuse_session;

namespace swapd::bench {

class ThrottledFile {
 public:
  // backing: what it holds; at: a directory that it is mounted on. Needs root and /dev/fuse.
  [[nodiscard]] static Result<std::unique_ptr<ThrottledFile>> make(const std::string& backing, const std::string& at);
  ~ThrottledFile();
  ThrottledFile(const ThrottledFile&) = delete;
  ThrottledFile& operator=(const ThrottledFile&) = delete;

  [[nodiscard]] std::string path() const { return at_ + "/file"; }
  // Bytes a second; 0: as fast as it goes.
  void set_rate(std::uint64_t rate) { rate_ = rate; }

 private:
  struct Calls;
  struct Free {
    void operator()(fuse_session* session) const;
  };
  ThrottledFile() = default;
  void serve(const std::stop_token& stop);
  void pay(std::uint64_t bytes);

  std::string at_;
  Fd backing_;
  std::unique_ptr<fuse_session, Free> session_;
  std::vector<char> data_;  // of a read
  std::uint64_t size_ = 0;
  bool mounted_ = false;
  std::atomic<std::uint64_t> rate_{0};
  std::int64_t free_at_ns_ = 0;  // when the disk has done all that it was given
  std::jthread thread_;
};

}  // namespace swapd::bench
