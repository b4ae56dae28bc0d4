// Asks polkit whether a client of the message bus may do more than the everyday
// (org.freedesktop.PolicyKit1.Authority.CheckAuthorization).
#pragma once

#include <systemd/sd-bus.h>

#include <functional>
#include <list>

#include "bus/caller.h"

namespace swapd::bus {

// Gives rights to the sender of a call.
class Authority {
 public:
  enum class Verdict : std::uint8_t {
    granted,
    denied,
    challenge,  // it would ask the user for a password, and the client does not let it, or there is no user to ask
    absent,     // there is none
    busy,       // this user asks too much at once
  };
  Authority() = default;
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;
  virtual ~Authority() = default;
  // done: later, from the event loop, at most once; not after the end of this object.
  virtual void ask(sd_bus_message* call, std::uint32_t uid, Right right, std::function<void(Verdict)> done) = 0;
};

class Polkit final : public Authority {
 public:
  // The bus that calls come from is where polkit is asked. only_root: an answer is believed if its sender is root; else
  // if its sender has polkit's name, which on the system bus the bus's own policy keeps for polkit.
  Polkit(sd_bus* bus, bool only_root) : bus_(bus), only_root_(only_root) {}
  ~Polkit() override;
  void ask(sd_bus_message* call, std::uint32_t uid, Right right, std::function<void(Verdict)> done) override;

 private:
  struct Question {
    Polkit* self = nullptr;
    std::uint32_t uid = 0;  // of who has made the call
    sd_bus_slot* slot = nullptr;
    std::function<void(Verdict)> done;
  };
  static int on_answer(sd_bus_message* answer, void* data, sd_bus_error* error);

  sd_bus* bus_;
  bool only_root_;
  std::list<Question> open_;
};

}  // namespace swapd::bus
