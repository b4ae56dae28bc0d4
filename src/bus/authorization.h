// Rights of the calls' senders: what each has by itself, and what polkit grants it when a call is refused.
//
// On the private socket, which only root and its owner get to, a caller sees all. On the message bus with an Authority,
// a call that lacks a right waits until that has answered; if the right is granted, the call goes back to the front of
// the connection's queue and comes again, with the right.
#pragma once

#include <systemd/sd-bus.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "bus/polkit.h"

namespace swapd::bus {

class Authorization {
 public:
  // The call is refused after all: `right` was not granted, and `verdict` says why.
  using Refused =
      std::function<void(sd_bus_message* call, const Caller&, Right, Authority::Verdict verdict, const Error& refusal)>;
  explicit Authorization(Refused refused) : refused_(std::move(refused)) {}

  // On this message bus, callers that are refused something get it if this says so. Null: no longer.
  void use(sd_bus* bus, Authority* authority);
  [[nodiscard]] Caller caller(sd_bus_message* call, std::uint32_t uid) const;
  // True: the right that the caller lacked was asked for, and the call comes again or is refused later.
  bool ask(sd_bus_message* call, const Caller& caller, const Error& refusal);
  // A call has come. True: it comes again, and caller() has what it was granted until the next call.
  [[nodiscard]] bool begin(const sd_bus_message* call);
  // This call will not be answered after all.
  void drop(const sd_bus_message* call);
  // The connection is about to go.
  void forget(const sd_bus* bus);

 private:
  // Rights of a call that is dispatched again.
  struct Grant {
    std::shared_ptr<sd_bus_message> call;
    Rights rights;
  };
  [[nodiscard]] bool may_ask(sd_bus_message* call) const;
  [[nodiscard]] bool come_again(const std::shared_ptr<sd_bus_message>& call, Rights has, Right right);

  Refused refused_;
  sd_bus* bus_ = nullptr;
  Authority* authority_ = nullptr;
  std::vector<Grant> grants_;     // of calls that come again
  std::optional<Grant> granted_;  // of the call that is being answered
};

}  // namespace swapd::bus
