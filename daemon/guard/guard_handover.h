// The guard's side of a takeover: the next swapd comes to the door and asks for the listeners one after the other
// (guard_takeover.h).
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "guard/guard_socket.h"
#include "guard/held_listeners.h"

namespace swapd::daemon {

class GuardHandover {
 public:
  // state_dir: where the door is; empty: there is none.
  explicit GuardHandover(std::string state_dir) : state_dir_(std::move(state_dir)) {}

  // Opens the door, if it is not open; a swapd that comes is let in later.
  void open_door(pid_t guard);
  void shut_door() { door_.shut(); }
  [[nodiscard]] bool has_door() const { return door_.is_open(); }
  [[nodiscard]] int door() const { return door_.number(); }
  // The process at the door; nothing if it is not of our own user.
  [[nodiscard]] Fd accept() const { return door_.accept(); }
  // This swapd asks from now on, and is given these listeners.
  void begin(Fd caller, std::vector<int> listeners);
  [[nodiscard]] int caller() const { return caller_.get(); }  // below 0: none
  // Answers what the caller has asked. Returns the listener that it receives from now on; below 0: none.
  [[nodiscard]] int serve(const HeldListeners& held);
  // The next swapd has some of the listeners, too.
  [[nodiscard]] bool has_begun() const { return given_; }

 private:
  std::string state_dir_;
  GuardDoor door_;
  Fd caller_;               // the next swapd
  std::vector<int> asked_;  // what it is given
  bool given_ = false;
};

}  // namespace swapd::daemon
