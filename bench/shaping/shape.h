// What the parts of `shape-accuracy` and `shape-overhead` share: one way to move blocks.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace swapd::bench {

// "disk-logical": blocks of a cached file; "disk-cold": of one that drop_cache() was called for; "disk-device": past
// the cache (O_DIRECT); "tcp", "udp": to a port of loopback; "write": into the file.
class Mover {
 public:
  [[nodiscard]] static Result<Mover> make(const std::string& target, std::size_t block, const std::string& place);
  // One call: how many bytes it moved. Below 0: errno says why.
  [[nodiscard]] ssize_t move();
  // Of "disk-cold": what is moved next comes from the disk.
  void drop_cache();

 private:
  struct Free {
    void operator()(char* bytes) const;
  };
  Fd file_;
  std::unique_ptr<char, Free> buffer_;
  std::size_t block_ = 0;
  off_t at_ = 0, size_ = 0;
  bool writes_ = false, network_ = false, cold_ = false;
};

// Takes whatever comes at a port of its own, on threads of its own.
class Sink {
 public:
  Sink();
  ~Sink();
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  [[nodiscard]] Status open(bool stream);
  [[nodiscard]] int port() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A file of so many bytes beside swapbench's temporary directory, on a disk, its pages clean.
[[nodiscard]] Status make_file(const std::string& path, std::size_t size);

}  // namespace swapd::bench
