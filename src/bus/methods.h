// Methods and properties of the interfaces in systemd/org.swapd1.*.xml, as the vtables' callbacks
// (sd_bus_add_object_vtable(3)): they unpack a message, ask the backend, and pack the answer. Their user data is the
// Manager; for a process's object, the path says which.
#pragma once

#include <systemd/sd-bus.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bus/backend.h"
#include "bus/caller.h"
#include "bus/wire.h"

namespace swapd::bus {

class Manager;

struct Methods {
  // --- what each of them needs ---
  static int fail(sd_bus_error* out, const Error& error);
  static int invalid(sd_bus_error* out, const std::string& line);
  static Manager& self(void* data);
  static int reply(sd_bus_message* call, const std::string& text);
  // A right that the caller lacks may be had of polkit: then the call comes again.
  static int refuse(sd_bus_message* call, void* data, const Caller& caller, const Error& refusal, sd_bus_error* error);
  static int done(sd_bus_message* call, void* data, const Caller& caller, const Status& status, sd_bus_error* error);
  static Error may_not_view(sd_bus_message* call);
  // Answers once it is called; the client may be gone by then.
  static std::function<void(const Status&)> later(sd_bus_message* call, void* data, const Caller& caller);
  // The caller's pid, and effective uid with what that may, as the kernel vouches for them.
  static int caller(sd_bus_message* call, void* data, pid_t* pid, Caller* who);
  static int caller(sd_bus_message* call, void* data, Caller* who);
  static Recipient client_of(sd_bus_message* call);
  // For what shows other users' programs: then `show` answers.
  template <typename Show>
  static int view(sd_bus_message* call, void* data, sd_bus_error* error, Show show) {
    Caller who;
    if (const int r = caller(call, data, &who); r < 0) return r;
    return who.may(Right::view) ? show() : refuse(call, data, who, may_not_view(call), error);
  }
  // Reads the process that a call is about: its path says it, or else its first argument.
  static int read_pid(sd_bus_message* call, pid_t* pid, sd_bus_error* error);

  // --- methods ---
  static int status(sd_bus_message* call, void* data, sd_bus_error*);
  static int processes(sd_bus_message* call, void* data, sd_bus_error* error);
  static int why(sd_bus_message* call, void* data, sd_bus_error* error);
  static int graph(sd_bus_message* call, void* data, sd_bus_error* error);
  static int policy(sd_bus_message* call, void* data, sd_bus_error* error);
  static int classes(sd_bus_message* call, void* data, sd_bus_error* error);
  static int read_changes(sd_bus_message* call, std::vector<LimitChange>& changes);
  static int change_class(sd_bus_message* call, void* data, sd_bus_error* error, bool makes);
  static int create_class(sd_bus_message* call, void* data, sd_bus_error* error);
  static int set_class(sd_bus_message* call, void* data, sd_bus_error* error);
  static int remove_class(sd_bus_message* call, void* data, sd_bus_error* error);
  static int launch(sd_bus_message* call, void* data, sd_bus_error* error);
  static int enroll(sd_bus_message* call, void* data, sd_bus_error* error);
  static int enroll_pidfd(sd_bus_message* call, void* data, sd_bus_error* error);
  static int enroll(pid_t pid, sd_bus_message* call, void* data);
  static int release(sd_bus_message* call, void* data, sd_bus_error* error);
  static int thaw(sd_bus_message* call, void* data, sd_bus_error* error);
  static int restart(sd_bus_message* call, void* data, sd_bus_error* error);
  static int set_paused(sd_bus_message* call, void* data, sd_bus_error* error, bool paused);
  static int pause(sd_bus_message* call, void* data, sd_bus_error* error);
  static int resume(sd_bus_message* call, void* data, sd_bus_error* error);
  static int set(sd_bus_message* call, void* data, sd_bus_error* error);
  static Result<AskedPriority> asked_priority(std::string_view policy, int nice, int priority);
  static int dump(sd_bus_message* call, void* data, sd_bus_error* error);
  static int reply_memory(sd_bus_message* call, const std::string& text, sd_bus_error* error);
  static int set_subscribed(sd_bus_message* call, void* data, sd_bus_error* error, bool on);
  static int subscribe(sd_bus_message* call, void* data, sd_bus_error* error);
  static int unsubscribe(sd_bus_message* call, void* data, sd_bus_error* error);
  static int follow_events(sd_bus_message* call, void* data, sd_bus_error* error);
  static int record(sd_bus_message* call, void* data, sd_bus_error* error);

  // --- properties, and which objects there are ---
  static int version(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void* data, sd_bus_error*);
  static int pid(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void*, sd_bus_error*);
  // Properties of the Manager that may change.
  static int manager_property(sd_bus*, const char*, const char*, const char* name, sd_bus_message* reply, void* data,
                              sd_bus_error*);
  // Properties of the objects below it.
  static int property(sd_bus*, const char* path, const char*, const char* name, sd_bus_message* reply, void* data,
                      sd_bus_error*);
  static int find(sd_bus*, const char* path, const char* interface, void* data, void** found, sd_bus_error*);
  static int enumerate(sd_bus*, const char* prefix, void* data, char*** nodes, sd_bus_error*);
};

}  // namespace swapd::bus
