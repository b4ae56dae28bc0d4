// Where the next swapd finds the guard of one that has ended, and asks it for its listeners (guard_takeover.h).
#pragma once

#include <string>

#include "base/fd.h"

namespace swapd::daemon {

class GuardDoor {
 public:
  GuardDoor() = default;
  GuardDoor(const GuardDoor&) = delete;
  GuardDoor& operator=(const GuardDoor&) = delete;
  ~GuardDoor() { shut(); }

  // Who comes before it is answered waits there. Where that fails, the guard goes on without.
  void open(std::string path);
  void shut();
  [[nodiscard]] bool is_open() const { return static_cast<bool>(socket_); }
  [[nodiscard]] int error() const { return error_; }  // of an open() that failed
  [[nodiscard]] int number() const { return socket_.get(); }
  // Of our own user only; else nothing.
  [[nodiscard]] Fd accept() const;

 private:
  std::string path_;
  Fd socket_;
  int error_ = 0;
};

}  // namespace swapd::daemon
