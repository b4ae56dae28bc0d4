#include "bus/polkit.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace swapd::bus {
namespace {

using Verdict = Authority::Verdict;

constexpr std::uint64_t answer_within_us = 5'000'000;
constexpr std::uint64_t password_within_us = 120'000'000;
constexpr std::ptrdiff_t max_of_a_user = 16;
constexpr std::uint32_t may_ask_the_user = 1;

bool from_root(sd_bus_message* answer) {
  sd_bus_creds* creds = nullptr;
  uid_t uid = 1;
  if (sd_bus_query_sender_creds(answer, SD_BUS_CREDS_EUID, &creds) >= 0) (void)sd_bus_creds_get_euid(creds, &uid);
  sd_bus_creds_unref(creds);
  return uid == 0;
}

Verdict verdict_of(sd_bus_message* answer) {
  if (const sd_bus_error* error = sd_bus_message_get_error(answer); error != nullptr) {
    const bool gone = sd_bus_error_has_name(error, SD_BUS_ERROR_SERVICE_UNKNOWN) > 0 ||
                      sd_bus_error_has_name(error, SD_BUS_ERROR_NAME_HAS_NO_OWNER) > 0;
    return gone ? Verdict::absent : Verdict::denied;
  }
  int authorized = 0;
  int challenge = 0;
  if (sd_bus_message_enter_container(answer, 'r', "bba{ss}") < 0 ||
      sd_bus_message_read(answer, "bb", &authorized, &challenge) < 0)
    return Verdict::denied;
  if (authorized != 0) return Verdict::granted;
  return challenge != 0 ? Verdict::challenge : Verdict::denied;
}

}  // namespace

std::string_view action(Right right) {
  static constexpr std::array<std::string_view, rights> names = {
      "org.swapd1.view",           "org.swapd1.manage-own", "org.swapd1.manage-others", "org.swapd1.record",
      "org.swapd1.raise-priority", "org.swapd1.set-limits", "org.swapd1.administer"};
  return names.at(static_cast<std::size_t>(right));
}

Polkit::~Polkit() {
  for (const Question& question : open_) sd_bus_slot_unref(question.slot);
}

void Polkit::ask(sd_bus_message* call, std::uint32_t uid, Right right, std::function<void(Verdict)> done) {
  const char* sender = sd_bus_message_get_sender(call);
  if (sender == nullptr) return done(Verdict::denied);
  if (std::ranges::count(open_, uid, &Question::uid) >= max_of_a_user) return done(Verdict::busy);
  const bool interactive = sd_bus_message_get_allow_interactive_authorization(call) > 0;
  sd_bus_message* question = nullptr;
  int r = sd_bus_message_new_method_call(bus_, &question, "org.freedesktop.PolicyKit1",
                                         "/org/freedesktop/PolicyKit1/Authority",
                                         "org.freedesktop.PolicyKit1.Authority", "CheckAuthorization");
  // A subject, an action, no details, whether it may ask, and no name to cancel it by.
  if (r >= 0)
    r = sd_bus_message_append(question, "(sa{sv})sa{ss}us", "system-bus-name", 1, "name", "s", sender,
                              std::string(action(right)).c_str(), 0, interactive ? may_ask_the_user : 0, "");
  if (r >= 0) {
    open_.push_back({this, uid, nullptr, std::move(done)});
    r = sd_bus_call_async(bus_, &open_.back().slot, question, on_answer, &open_.back(),
                          interactive ? password_within_us : answer_within_us);
    if (r < 0) {
      done = std::move(open_.back().done);
      open_.pop_back();
    }
  }
  sd_bus_message_unref(question);
  if (r < 0) done(Verdict::denied);
}

int Polkit::on_answer(sd_bus_message* answer, void* data, sd_bus_error*) {
  auto* question = static_cast<Question*>(data);
  Polkit& self = *question->self;
  const auto done = std::move(question->done);
  sd_bus_slot_unref(question->slot);
  self.open_.remove_if([&](const Question& one) { return &one == question; });
  Verdict verdict = verdict_of(answer);
  if (verdict == Verdict::granted && self.only_root_ && !from_root(answer)) verdict = Verdict::denied;
  done(verdict);
  return 1;
}

}  // namespace swapd::bus
