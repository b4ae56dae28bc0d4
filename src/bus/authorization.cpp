#include "bus/authorization.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace swapd::bus {

void Authorization::use(sd_bus* bus, Authority* authority) {
  bus_ = bus;
  authority_ = authority;
}

Caller Authorization::caller(sd_bus_message* call, std::uint32_t uid) const {
  if (uid == 0) return {uid, all_rights, may_ask(call)};
  Rights has;
  if (!may_ask(call)) has.add({Right::view, Right::record, Right::manage_own});
  if (uid == ::geteuid())
    has.add({Right::view, Right::record, Right::manage_own, Right::set_limits, Right::administer});
  if (granted_ && granted_->call.get() == call) has.add(granted_->rights);
  return {uid, has, may_ask(call)};
}

bool Authorization::may_ask(sd_bus_message* call) const {
  return authority_ != nullptr && sd_bus_message_get_bus(call) == bus_;
}

bool Authorization::ask(sd_bus_message* call, const Caller& caller, const Error& refusal) {
  const std::optional<Right> lacks = caller.missing();
  if (!lacks || !may_ask(call) || (refusal.code() != EACCES && refusal.code() != EPERM)) return false;
  const std::shared_ptr<sd_bus_message> kept(sd_bus_message_ref(call), sd_bus_message_unref);
  const auto answered = [this, kept, right = *lacks, caller, refusal](Authority::Verdict verdict) {
    // Without polkit each user may manage their own.
    const bool granted =
        verdict == Authority::Verdict::granted || (verdict == Authority::Verdict::absent && right == Right::manage_own);
    if (!granted || !come_again(kept, caller.rights(), right)) refused_(kept.get(), caller, right, verdict, refusal);
  };
  authority_->ask(call, caller.uid(), *lacks, answered);
  return true;
}

bool Authorization::come_again(const std::shared_ptr<sd_bus_message>& call, Rights has, Right right) {
  has.add(right);
  grants_.push_back({call, has});
  if (sd_bus_message_rewind(call.get(), 1) >= 0 && sd_bus_enqueue_for_read(bus_, call.get()) >= 0) return true;
  grants_.pop_back();
  return false;
}

bool Authorization::begin(const sd_bus_message* call) {
  granted_.reset();
  const auto mine = std::ranges::find_if(grants_, [&](const Grant& g) { return g.call.get() == call; });
  if (mine == grants_.end()) return false;
  granted_ = std::move(*mine);
  grants_.erase(mine);
  return true;
}

void Authorization::drop(const sd_bus_message* call) {
  (void)begin(call);
  granted_.reset();
}

void Authorization::forget(const sd_bus* bus) {
  std::erase_if(grants_, [&](const Grant& g) { return sd_bus_message_get_bus(g.call.get()) == bus; });
  granted_.reset();
}

}  // namespace swapd::bus
