#include "bus/methods.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>

#include "bus/json.h"
#include "bus/manager.h"

namespace swapd::bus {

int Methods::status(sd_bus_message* call, void* data, sd_bus_error*) {
  return reply(call, status_json(self(data).backend_.status()));
}

int Methods::processes(sd_bus_message* call, void* data, sd_bus_error* error) {
  return view(call, data, error, [&] { return reply(call, threads_json(self(data).backend_.threads())); });
}

int Methods::why(sd_bus_message* call, void* data, sd_bus_error* error) {
  pid_t pid = 0;
  if (const int r = read_pid(call, &pid, error); r < 0) return r;
  return view(call, data, error, [&] {
    const Result<std::vector<ThreadView>> threads = self(data).backend_.why(pid);
    return threads ? reply(call, why_json(*threads)) : fail(error, threads.error());
  });
}

int Methods::graph(sd_bus_message* call, void* data, sd_bus_error* error) {
  return view(call, data, error, [&] { return reply(call, graph_json(self(data).backend_.graph())); });
}

int Methods::policy(sd_bus_message* call, void* data, sd_bus_error* error) {
  return view(call, data, error, [&] { return reply(call, policy_json(self(data).backend_.policy())); });
}

int Methods::classes(sd_bus_message* call, void* data, sd_bus_error* error) {
  return view(call, data, error, [&] { return reply(call, limits_json(self(data).backend_.classes())); });
}

// For each: the device (or nothing), the key as in a policy, the value.
int Methods::read_changes(sd_bus_message* call, std::vector<LimitChange>& changes) {
  constexpr std::size_t most = 1000;
  int r = sd_bus_message_enter_container(call, 'a', "(sss)");
  while (r >= 0) {
    const char *device = nullptr, *key = nullptr, *value = nullptr;
    r = sd_bus_message_read(call, "(sss)", &device, &key, &value);
    if (r <= 0) break;
    if (changes.size() >= most) return -E2BIG;
    changes.push_back({device, key, value});
  }
  return r < 0 ? r : sd_bus_message_exit_container(call);
}

int Methods::change_class(sd_bus_message* call, void* data, sd_bus_error* error, bool makes) {
  const char* name = nullptr;
  std::vector<LimitChange> changes;
  int r = sd_bus_message_read(call, "s", &name);
  if (r >= 0) r = read_changes(call, changes);
  if (r < 0) return r;
  Caller who;
  if (r = caller(call, data, &who); r < 0) return r;
  Backend& backend = self(data).backend_;
  return done(call, data, who, makes ? backend.create_class(name, changes, who) : backend.set_class(name, changes, who),
              error);
}

int Methods::create_class(sd_bus_message* call, void* data, sd_bus_error* error) {
  return change_class(call, data, error, true);
}

int Methods::set_class(sd_bus_message* call, void* data, sd_bus_error* error) {
  return change_class(call, data, error, false);
}

int Methods::remove_class(sd_bus_message* call, void* data, sd_bus_error* error) {
  const char* name = nullptr;
  if (const int r = sd_bus_message_read(call, "s", &name); r < 0) return r;
  Caller who;
  if (const int r = caller(call, data, &who); r < 0) return r;
  return done(call, data, who, self(data).backend_.remove_class(name, who), error);
}

int Methods::launch(sd_bus_message* call, void* data, sd_bus_error* error) {
  LaunchRequest request;
  int pidfd = -1;
  int memory = -1;
  const char* class_name = nullptr;
  const char* observe = nullptr;
  int r = sd_bus_message_read(call, "hhss", &pidfd, &memory, &class_name, &observe);
  if (r < 0) return r;
  r = caller(call, data, &request.pid, &request.caller);
  if (r < 0) return r;
  const Caller who = request.caller;
  // The message owns its descriptors: the backend gets duplicates.
  request.pidfd.reset(::fcntl(pidfd, F_DUPFD_CLOEXEC, 3));
  request.memory.reset(::fcntl(memory, F_DUPFD_CLOEXEC, 3));
  if (!request.pidfd || !request.memory) return fail(error, errno_error("swapd has no descriptor left to launch with"));
  request.class_name = class_name;
  request.observe = observe;
  const Result<LaunchAnswer> answer = self(data).backend_.launch(std::move(request));
  if (!answer) return refuse(call, data, who, answer.error(), error);

  sd_bus_message* message = nullptr;
  r = sd_bus_message_new_method_return(call, &message);
  if (r < 0) return r;
  r = sd_bus_message_append(message, "b", answer->install ? 1 : 0);
  if (r >= 0)
    r = sd_bus_message_append_array(message, 'y', answer->program.data(), answer->program.size() * sizeof(sock_filter));
  if (r >= 0) r = sd_bus_send(nullptr, message, nullptr);
  sd_bus_message_unref(message);
  return r < 0 ? r : 1;
}

int Methods::enroll(sd_bus_message* call, void* data, sd_bus_error* error) {
  pid_t pid = 0;
  if (const int r = read_pid(call, &pid, error); r < 0) return r;
  return enroll(pid, call, data);
}

// As long as a process has its pidfd open, no other process gets that process's id: the message has it open until the
// answer.
int Methods::enroll_pidfd(sd_bus_message* call, void* data, sd_bus_error* error) {
  int pidfd = -1;
  if (const int r = sd_bus_message_read(call, "h", &pidfd); r < 0) return r;
  const Result<pid_t> pid = self(data).backend_.pid_of(pidfd);
  return pid ? enroll(*pid, call, data) : fail(error, pid.error());
}

int Methods::enroll(pid_t pid, sd_bus_message* call, void* data) {
  EnrollRequest request;
  request.pid = pid;
  int tree = 0;
  int allow_no_new_privs = 0;
  const char* class_name = nullptr;
  if (const int r = sd_bus_message_read(call, "bsb", &tree, &class_name, &allow_no_new_privs); r < 0) return r;
  if (const int r = caller(call, data, &request.caller); r < 0) return r;
  request.tree = tree != 0;
  request.class_name = class_name;
  request.allow_no_new_privs = allow_no_new_privs != 0;
  self(data).backend_.enroll(request, later(call, data, request.caller));
  return 1;
}

int Methods::release(sd_bus_message* call, void* data, sd_bus_error* error) {
  pid_t pid = 0;
  if (const int r = read_pid(call, &pid, error); r < 0) return r;
  Caller who;
  if (const int r = caller(call, data, &who); r < 0) return r;
  return done(call, data, who, self(data).backend_.release(pid, who), error);
}

int Methods::thaw(sd_bus_message* call, void* data, sd_bus_error* error) {
  pid_t pid = 0;
  if (const int r = read_pid(call, &pid, error); r < 0) return r;
  Caller who;
  if (const int r = caller(call, data, &who); r < 0) return r;
  return done(call, data, who, self(data).backend_.thaw(pid, who), error);
}

int Methods::restart(sd_bus_message* call, void* data, sd_bus_error* error) {
  Caller who;
  if (const int r = caller(call, data, &who); r < 0) return r;
  return done(call, data, who, self(data).backend_.restart(who), error);
}

int Methods::set_paused(sd_bus_message* call, void* data, sd_bus_error* error, bool paused) {
  Caller who;
  if (const int r = caller(call, data, &who); r < 0) return r;
  return done(call, data, who, self(data).backend_.pause(paused, who), error);
}

int Methods::pause(sd_bus_message* call, void* data, sd_bus_error* error) {
  return set_paused(call, data, error, true);
}

int Methods::resume(sd_bus_message* call, void* data, sd_bus_error* error) {
  return set_paused(call, data, error, false);
}

int Methods::set(sd_bus_message* call, void* data, sd_bus_error* error) {
  pid_t pid = 0;
  if (const int r = read_pid(call, &pid, error); r < 0) return r;
  const char* policy = nullptr;
  std::int32_t nice = 0;
  std::int32_t priority = 0;
  if (const int r = sd_bus_message_read(call, "sii", &policy, &nice, &priority); r < 0) return r;
  const Result<AskedPriority> asked = asked_priority(policy, nice, priority);
  if (!asked) return fail(error, asked.error());
  Caller who;
  if (const int r = caller(call, data, &who); r < 0) return r;
  return done(call, data, who, self(data).backend_.set(pid, *asked, who), error);
}

Result<AskedPriority> Methods::asked_priority(std::string_view policy, int nice, int priority) {
  const bool nice_counts = nice >= -20 && nice <= 19;
  const Error bad_nice(EINVAL, "nice value " + std::to_string(nice) + " is not in -20…19");
  if (policy == "nice") return nice_counts ? Result(AskedPriority::only_nice(nice)) : bad_nice;
  SchedAttr attr;
  for (const SchedPolicy known :
       {SchedPolicy::other, SchedPolicy::batch, SchedPolicy::idle, SchedPolicy::fifo, SchedPolicy::rr}) {
    if (policy != name(known)) continue;
    attr.policy = known;
    if (attr.realtime()) {
      if (priority < 1 || priority > max_realtime)
        return Error(EINVAL, "real-time priority " + std::to_string(priority) + " is not in 1…" +
                                 std::to_string(max_realtime) + " (swapd itself has the next)");
      attr.rt_priority = static_cast<std::uint8_t>(priority);
    } else {
      if (!nice_counts) return bad_nice;
      attr.nice = static_cast<std::int8_t>(nice);
    }
    return AskedPriority(attr);
  }
  return Error(EINVAL, "'" + std::string(policy) + "' is not one of nice, other, batch, idle, fifo, rr");
}

// A large answer in memory that the client maps or reads; it is sealed, so that it cannot change (memfd_create(2)).
int Methods::dump(sd_bus_message* call, void* data, sd_bus_error* error) {
  const char* what = nullptr;
  if (const int r = sd_bus_message_read(call, "s", &what); r < 0) return r;
  const std::string wanted = what;
  return view(call, data, error, [&] {
    Backend& backend = self(data).backend_;
    if (wanted == "status") return reply_memory(call, status_json(backend.status()), error);
    if (wanted == "processes") return reply_memory(call, threads_json(backend.threads()), error);
    if (wanted == "graph") return reply_memory(call, graph_json(backend.graph()), error);
    if (wanted == "policy") return reply_memory(call, policy_json(backend.policy()), error);
    return invalid(error, "'" + valid_utf8(wanted) + "' is not one of status, processes, graph, policy");
  });
}

int Methods::reply_memory(sd_bus_message* call, const std::string& text, sd_bus_error* error) {
  const Fd memory(::memfd_create("swapd-dump", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return fail(error, errno_error("swapd has no descriptor left for the answer"));
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(memory.get(), text.data() + done, text.size() - done);
    if (n <= 0) return fail(error, errno_error("writing the answer"));
    done += static_cast<std::size_t>(n);
  }
  constexpr int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (::lseek(memory.get(), 0, SEEK_SET) < 0 || ::fcntl(memory.get(), F_ADD_SEALS, seals) < 0)
    return fail(error, errno_error("sealing the answer"));
  return sd_bus_reply_method_return(call, "h", memory.get());
}

int Methods::set_subscribed(sd_bus_message* call, void* data, sd_bus_error* error, bool on) {
  Caller who;
  if (int r = caller(call, data, &who); r < 0) return r;
  if (!who.may(Right::view)) return refuse(call, data, who, may_not_view(call), error);
  const Recipient client = client_of(call);
  if (on && !self(data).subscribers_.has_room(client, who.uid()))
    return fail(error, Error(EDQUOT, "too many clients of user " + std::to_string(who.uid()) + " subscribe"));
  const int r = sd_bus_reply_method_return(call, nullptr);
  self(data).subscribe(client, who.uid(), on);
  return r;
}

int Methods::subscribe(sd_bus_message* call, void* data, sd_bus_error* error) {
  return set_subscribed(call, data, error, true);
}

int Methods::unsubscribe(sd_bus_message* call, void* data, sd_bus_error* error) {
  return set_subscribed(call, data, error, false);
}

int Methods::follow_events(sd_bus_message* call, void* data, sd_bus_error* error) {
  int on = 0;
  if (const int r = sd_bus_message_read(call, "b", &on); r < 0) return r;
  Caller who;
  if (const int r = caller(call, data, &who); r < 0) return r;
  if (!who.may(Right::record)) return refuse(call, data, who, may_not_view(call), error);
  // The answer goes first: no event may reach a client before it knows that it follows.
  const int r = sd_bus_reply_method_return(call, nullptr);
  self(data).follow(client_of(call), on != 0);
  return r;
}

int Methods::record(sd_bus_message* call, void* data, sd_bus_error* error) {
  int on = 0;
  if (const int r = sd_bus_message_read(call, "b", &on); r < 0) return r;
  const Recipient client = client_of(call);
  Manager& manager = self(data);
  Caller who;
  if (const int r = caller(call, data, &who); r < 0) return r;
  if (!who.may(Right::record)) return refuse(call, data, who, may_not_view(call), error);
  if (on != 0) return done(call, data, who, manager.record(client), error);
  if (manager.recorder_ != client) return fail(error, Error(ENODATA, "this client does not record"));
  manager.end_recording();  // the last lines go before the answer
  return sd_bus_reply_method_return(call, nullptr);
}

}  // namespace swapd::bus
