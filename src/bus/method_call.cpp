// Shared by the methods: the caller, refusals, and the moment of the answer.
#include <memory>
#include <utility>

#include "bus/json.h"
#include "bus/manager.h"
#include "bus/methods.h"
#include "bus/objects.h"

namespace swapd::bus {

int Methods::fail(sd_bus_error* out, const Error& error) {
  const bool denied = error.code() == EACCES || error.code() == EPERM;
  const char* name = error.code() == EINVAL ? error_name::invalid_argument
                     : error.gone()         ? error_name::not_found
                     : denied               ? error_name::access_denied
                                            : error_name::failed;
  const std::string line = error.context().empty() ? error.text() : error.context();
  return sd_bus_error_set(out, name, valid_utf8(line).c_str());
}

int Methods::invalid(sd_bus_error* out, const std::string& line) { return fail(out, Error(EINVAL, line)); }

Manager& Methods::self(void* data) { return *static_cast<Manager*>(data); }

int Methods::reply(sd_bus_message* call, const std::string& text) {
  return sd_bus_reply_method_return(call, "s", text.c_str());
}

int Methods::refuse(sd_bus_message* call, void* data, const Caller& caller, const Error& refusal, sd_bus_error* error) {
  return self(data).authorization_.ask(call, caller, refusal) ? 1 : fail(error, refusal);
}

int Methods::done(sd_bus_message* call, void* data, const Caller& caller, const Status& status, sd_bus_error* error) {
  return status ? sd_bus_reply_method_return(call, nullptr) : refuse(call, data, caller, status.error(), error);
}

Error Methods::may_not_view(sd_bus_message* call) {
  return {EACCES,
          std::string(sd_bus_message_get_member(call)) + " shows what is other users': only root may ask for it"};
}

std::function<void(const Status&)> Methods::later(sd_bus_message* call, void* data, const Caller& caller) {
  const std::shared_ptr<sd_bus_message> kept(sd_bus_message_ref(call), sd_bus_message_unref);
  return [kept, data, caller](const Status& status) {
    self(data).has_changed();
    if (!status && self(data).authorization_.ask(kept.get(), caller, status.error())) return;
    sd_bus_error error{};
    if (!status) fail(&error, status.error());
    if (status)
      (void)sd_bus_reply_method_return(kept.get(), nullptr);
    else
      (void)sd_bus_reply_method_error(kept.get(), &error);
    sd_bus_error_free(&error);
  };
}

int Methods::caller(sd_bus_message* call, void* data, pid_t* pid, Caller* who) {
  sd_bus_creds* creds = nullptr;
  int r = sd_bus_query_sender_creds(call, SD_BUS_CREDS_PID | SD_BUS_CREDS_EUID, &creds);
  if (r < 0) return r;
  uid_t euid = 0;
  r = sd_bus_creds_get_euid(creds, &euid);
  if (r >= 0) r = sd_bus_creds_get_pid(creds, pid);
  sd_bus_creds_unref(creds);
  if (r >= 0) *who = self(data).authorization_.caller(call, euid);
  return r;
}

int Methods::caller(sd_bus_message* call, void* data, Caller* who) {
  pid_t by = 0;
  return caller(call, data, &by, who);
}

Recipient Methods::client_of(sd_bus_message* call) {
  const char* sender = sd_bus_message_get_sender(call);
  return {sd_bus_message_get_bus(call), sender == nullptr ? "" : sender};
}

// An id's type is unsigned on the wire, a pid is not.
int Methods::read_pid(sd_bus_message* call, pid_t* pid, sd_bus_error* error) {
  const char* path = sd_bus_message_get_path(call);
  if (std::string_view(path).starts_with(process_prefix)) {
    *pid = process_of(path);
    return *pid > 0 ? 0 : fail(error, Error(ENOENT, std::string("no process ") + path));
  }
  std::uint32_t number = 0;
  if (const int r = sd_bus_message_read(call, "u", &number); r < 0) return r;
  if (number == 0 || number > INT32_MAX) return invalid(error, std::to_string(number) + " is not a process id");
  *pid = static_cast<pid_t>(number);
  return 0;
}

}  // namespace swapd::bus
