#include "bus/methods.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "bus/json.h"
#include "bus/manager.h"
#include "bus/objects.h"
#include "bus/wire.h"

namespace swapd::bus {

// The vtable's callbacks: they unpack a message, ask the backend, and pack the answer.
struct Methods {
  static int fail(sd_bus_error* out, const Error& error) {
    const bool denied = error.code() == EACCES || error.code() == EPERM;
    const char* name = error.code() == EINVAL ? error_name::invalid_argument
                       : error.gone()         ? error_name::not_found
                       : denied               ? error_name::access_denied
                                              : error_name::failed;
    const std::string line = error.context().empty() ? error.text() : error.context();
    return sd_bus_error_set(out, name, valid_utf8(line).c_str());
  }

  static int invalid(sd_bus_error* out, const std::string& line) { return fail(out, Error(EINVAL, line)); }

  static Manager& self(void* data) { return *static_cast<Manager*>(data); }

  static int reply(sd_bus_message* call, const std::string& text) {
    return sd_bus_reply_method_return(call, "s", text.c_str());
  }

  // What the caller lacks for it may be had of polkit: then the call comes again.
  static int refuse(sd_bus_message* call, void* data, const Caller& caller, const Error& refusal, sd_bus_error* error) {
    return self(data).ask(call, caller, refusal) ? 1 : fail(error, refusal);
  }

  static int done(sd_bus_message* call, void* data, const Caller& caller, const Status& status, sd_bus_error* error) {
    return status ? sd_bus_reply_method_return(call, nullptr) : refuse(call, data, caller, status.error(), error);
  }

  static Error may_not_view(sd_bus_message* call) {
    return {EACCES,
            std::string(sd_bus_message_get_member(call)) + " shows what is other users': only root may ask for it"};
  }

  // Answers once it is called; the client may be gone by then.
  static std::function<void(const Status&)> later(sd_bus_message* call, void* data, const Caller& caller) {
    const std::shared_ptr<sd_bus_message> kept(sd_bus_message_ref(call), sd_bus_message_unref);
    return [kept, data, caller](const Status& status) {
      self(data).has_changed();
      if (!status && self(data).ask(kept.get(), caller, status.error())) return;
      sd_bus_error error{};
      if (!status) fail(&error, status.error());
      if (status)
        (void)sd_bus_reply_method_return(kept.get(), nullptr);
      else
        (void)sd_bus_reply_method_error(kept.get(), &error);
      sd_bus_error_free(&error);
    };
  }

  // The caller's pid, and effective uid with what that may, as the kernel vouches for them.
  static int caller(sd_bus_message* call, void* data, pid_t* pid, Caller* who) {
    sd_bus_creds* creds = nullptr;
    int r = sd_bus_query_sender_creds(call, SD_BUS_CREDS_PID | SD_BUS_CREDS_EUID, &creds);
    if (r < 0) return r;
    uid_t euid = 0;
    r = sd_bus_creds_get_euid(creds, &euid);
    if (r >= 0) r = sd_bus_creds_get_pid(creds, pid);
    sd_bus_creds_unref(creds);
    if (r >= 0) *who = Caller(euid, self(data).rights_of(call, euid), self(data).may_ask(call));
    return r;
  }
  static int caller(sd_bus_message* call, void* data, Caller* who) {
    pid_t by = 0;
    return caller(call, data, &by, who);
  }

  static Recipient client_of(sd_bus_message* call) {
    const char* sender = sd_bus_message_get_sender(call);
    return {sd_bus_message_get_bus(call), sender == nullptr ? "" : sender};
  }

  // For what shows other users' programs: then `show` answers.
  template <typename Show>
  static int view(sd_bus_message* call, void* data, sd_bus_error* error, Show show) {
    Caller who;
    if (const int r = caller(call, data, &who); r < 0) return r;
    return who.may(Right::view) ? show() : refuse(call, data, who, may_not_view(call), error);
  }

  // Which process a call is about: of the Manager an argument says it, of a Process its path.
  enum class Whose : std::uint8_t { argument, path };
  // An id's type is unsigned on the wire, a pid is not.
  template <Whose whose>
  static int read_pid(sd_bus_message* call, pid_t* pid, sd_bus_error* error) {
    if constexpr (whose == Whose::path) {
      *pid = process_of(sd_bus_message_get_path(call));
      return *pid > 0 ? 0 : fail(error, Error(ENOENT, std::string("no process ") + sd_bus_message_get_path(call)));
    }
    std::uint32_t number = 0;
    if (const int r = sd_bus_message_read(call, "u", &number); r < 0) return r;
    if (number == 0 || number > INT32_MAX) return invalid(error, std::to_string(number) + " is not a process id");
    *pid = static_cast<pid_t>(number);
    return 0;
  }

  static int status(sd_bus_message* call, void* data, sd_bus_error*) {
    return reply(call, status_json(self(data).backend_.status()));
  }

  static int processes(sd_bus_message* call, void* data, sd_bus_error* error) {
    return view(call, data, error, [&] { return reply(call, threads_json(self(data).backend_.threads())); });
  }

  template <Whose whose>
  static int why(sd_bus_message* call, void* data, sd_bus_error* error) {
    pid_t pid = 0;
    if (const int r = read_pid<whose>(call, &pid, error); r < 0) return r;
    return view(call, data, error, [&] {
      const Result<std::vector<ThreadView>> threads = self(data).backend_.why(pid);
      return threads ? reply(call, why_json(*threads)) : fail(error, threads.error());
    });
  }

  static int graph(sd_bus_message* call, void* data, sd_bus_error* error) {
    return view(call, data, error, [&] { return reply(call, graph_json(self(data).backend_.graph())); });
  }

  static int policy(sd_bus_message* call, void* data, sd_bus_error* error) {
    return view(call, data, error, [&] { return reply(call, policy_json(self(data).backend_.policy())); });
  }

  static int classes(sd_bus_message* call, void* data, sd_bus_error* error) {
    return view(call, data, error, [&] { return reply(call, limits_json(self(data).backend_.classes())); });
  }

  // For each: the device (or nothing), the key as in a policy, the value.
  static int read_changes(sd_bus_message* call, std::vector<LimitChange>& changes) {
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

  template <bool makes>
  static int set_class(sd_bus_message* call, void* data, sd_bus_error* error) {
    const char* name = nullptr;
    std::vector<LimitChange> changes;
    int r = sd_bus_message_read(call, "s", &name);
    if (r >= 0) r = read_changes(call, changes);
    if (r < 0) return r;
    Caller who;
    if (r = caller(call, data, &who); r < 0) return r;
    Backend& backend = self(data).backend_;
    return done(call, data, who,
                makes ? backend.create_class(name, changes, who) : backend.set_class(name, changes, who), error);
  }

  static int remove_class(sd_bus_message* call, void* data, sd_bus_error* error) {
    const char* name = nullptr;
    if (const int r = sd_bus_message_read(call, "s", &name); r < 0) return r;
    Caller who;
    if (const int r = caller(call, data, &who); r < 0) return r;
    return done(call, data, who, self(data).backend_.remove_class(name, who), error);
  }

  static int launch(sd_bus_message* call, void* data, sd_bus_error* error) {
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
    if (!request.pidfd || !request.memory)
      return fail(error, errno_error("swapd has no descriptor left to launch with"));
    request.class_name = class_name;
    request.observe = observe;
    const Result<LaunchAnswer> answer = self(data).backend_.launch(std::move(request));
    if (!answer) return refuse(call, data, who, answer.error(), error);

    sd_bus_message* message = nullptr;
    r = sd_bus_message_new_method_return(call, &message);
    if (r < 0) return r;
    r = sd_bus_message_append(message, "b", answer->install ? 1 : 0);
    if (r >= 0)
      r = sd_bus_message_append_array(message, 'y', answer->program.data(),
                                      answer->program.size() * sizeof(sock_filter));
    if (r >= 0) r = sd_bus_send(nullptr, message, nullptr);
    sd_bus_message_unref(message);
    return r < 0 ? r : 1;
  }

  static int enroll(sd_bus_message* call, void* data, sd_bus_error* error) {
    pid_t pid = 0;
    if (const int r = read_pid<Whose::argument>(call, &pid, error); r < 0) return r;
    return enroll(pid, call, data);
  }

  // As long as somebody has its pidfd open, no other process gets that process's id: the message has it open until the
  // answer.
  static int enroll_pidfd(sd_bus_message* call, void* data, sd_bus_error* error) {
    int pidfd = -1;
    if (const int r = sd_bus_message_read(call, "h", &pidfd); r < 0) return r;
    const Result<pid_t> pid = self(data).backend_.pid_of(pidfd);
    return pid ? enroll(*pid, call, data) : fail(error, pid.error());
  }

  static int enroll(pid_t pid, sd_bus_message* call, void* data) {
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

  template <Whose whose>
  static int release(sd_bus_message* call, void* data, sd_bus_error* error) {
    pid_t pid = 0;
    if (const int r = read_pid<whose>(call, &pid, error); r < 0) return r;
    Caller who;
    if (const int r = caller(call, data, &who); r < 0) return r;
    return done(call, data, who, self(data).backend_.release(pid, who), error);
  }

  static int restart(sd_bus_message* call, void* data, sd_bus_error* error) {
    Caller who;
    if (const int r = caller(call, data, &who); r < 0) return r;
    return done(call, data, who, self(data).backend_.restart(who), error);
  }

  template <bool paused>
  static int pause(sd_bus_message* call, void* data, sd_bus_error* error) {
    Caller who;
    if (const int r = caller(call, data, &who); r < 0) return r;
    return done(call, data, who, self(data).backend_.pause(paused, who), error);
  }

  template <Whose whose>
  static int set(sd_bus_message* call, void* data, sd_bus_error* error) {
    pid_t pid = 0;
    if (const int r = read_pid<whose>(call, &pid, error); r < 0) return r;
    const char* policy = nullptr;
    std::int32_t nice = 0;
    std::int32_t priority = 0;
    if (const int r = sd_bus_message_read(call, "sii", &policy, &nice, &priority); r < 0) return r;
    const Result<SchedAttr> attr = attributes(policy, nice, priority);
    if (!attr) return fail(error, attr.error());
    Caller who;
    if (const int r = caller(call, data, &who); r < 0) return r;
    return done(call, data, who, self(data).backend_.set(pid, *attr, who), error);
  }

  static Result<SchedAttr> attributes(std::string_view policy, int nice, int priority) {
    SchedAttr attr;
    for (const SchedPolicy known :
         {SchedPolicy::other, SchedPolicy::batch, SchedPolicy::idle, SchedPolicy::fifo, SchedPolicy::rr}) {
      if (policy != name(known)) continue;
      attr.policy = known;
      if (attr.realtime()) {
        if (priority < 1 || priority > 99)
          return Error(EINVAL, "real-time priority " + std::to_string(priority) + " is not in 1…99");
        attr.rt_priority = static_cast<std::uint8_t>(priority);
      } else {
        if (nice < -20 || nice > 19) return Error(EINVAL, "nice value " + std::to_string(nice) + " is not in -20…19");
        attr.nice = static_cast<std::int8_t>(nice);
      }
      return attr;
    }
    return Error(EINVAL, "'" + std::string(policy) + "' is not one of other, batch, idle, fifo, rr");
  }

  // A large answer in memory that the client maps or reads; nobody changes it any more (memfd_create(2), sealed).
  static int dump(sd_bus_message* call, void* data, sd_bus_error* error) {
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

  static int reply_memory(sd_bus_message* call, const std::string& text, sd_bus_error* error) {
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

  template <bool on>
  static int subscribe(sd_bus_message* call, void* data, sd_bus_error* error) {
    return view(call, data, error, [&] {
      if (on && !self(data).subscribers_.has_room()) return fail(error, Error(EDQUOT, "too many clients subscribe"));
      const int r = sd_bus_reply_method_return(call, nullptr);
      self(data).subscribe(client_of(call), on);
      return r;
    });
  }

  static int follow_events(sd_bus_message* call, void* data, sd_bus_error* error) {
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

  static int record(sd_bus_message* call, void* data, sd_bus_error* error) {
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

  static int version(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void* data, sd_bus_error*) {
    return sd_bus_message_append(reply, "s", self(data).backend_.version().c_str());
  }

  static int pid(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void*, sd_bus_error*) {
    return sd_bus_message_append(reply, "u", static_cast<std::uint32_t>(::getpid()));
  }

  // Of the Manager, what may change.
  static int manager_property(sd_bus*, const char*, const char*, const char* name, sd_bus_message* reply, void* data,
                              sd_bus_error*) {
    return append(reply, self(data).itself().properties.at(name));
  }

  // Of the objects below it.
  static int property(sd_bus*, const char* path, const char*, const char* name, sd_bus_message* reply, void* data,
                      sd_bus_error*) {
    const Tree& tree = self(data).tree();
    const auto object = tree.find(path);
    return object == tree.end() ? -ENOENT : append(reply, object->second.properties.at(name));
  }

  static int find(sd_bus*, const char* path, const char* interface, void* data, void** found, sd_bus_error*) {
    *found = data;
    // Who has no business with it is refused, and not told whether there is such a process.
    if (std::string_view(interface) == process_interface) return process_of(path) > 0 ? 1 : 0;
    const Tree& tree = self(data).tree();
    const auto object = tree.find(path);
    return object != tree.end() && object->second.interface == interface ? 1 : 0;
  }

  static int enumerate(sd_bus*, const char* prefix, void* data, char*** nodes, sd_bus_error*) {
    const std::string below = std::string(prefix) + "/";
    std::vector<std::string_view> paths;
    for (const auto& [path, object] : self(data).tree())
      if (path.starts_with(below)) paths.push_back(path);
    // sd-bus frees them.
    auto** list = static_cast<char**>(std::calloc(paths.size() + 1, sizeof(char*)));
    if (list == nullptr) return -ENOMEM;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      list[i] = ::strndup(paths[i].data(), paths[i].size());
      if (list[i] != nullptr) continue;
      for (std::size_t j = 0; j < i; ++j) std::free(list[j]);
      std::free(list);
      return -ENOMEM;
    }
    *nodes = list;
    return 1;
  }
};

namespace {

// Any peer that got as far as a connection may call: the private socket lets in root and its owner only.
constexpr auto open_to_peers = SD_BUS_VTABLE_UNPRIVILEGED;

const sd_bus_vtable manager_vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD_WITH_ARGS("Status", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), Methods::status, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Processes", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), Methods::processes, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Why", SD_BUS_ARGS("u", pid), SD_BUS_RESULT("s", json),
                            Methods::why<Methods::Whose::argument>, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Graph", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), Methods::graph, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Policy", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), Methods::policy, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Classes", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), Methods::classes, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("CreateClass", SD_BUS_ARGS("s", class, "a(sss)", limits), SD_BUS_NO_RESULT,
                            Methods::set_class<true>, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("SetClass", SD_BUS_ARGS("s", class, "a(sss)", limits), SD_BUS_NO_RESULT,
                            Methods::set_class<false>, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("RemoveClass", SD_BUS_ARGS("s", class), SD_BUS_NO_RESULT, Methods::remove_class,
                            open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Dump", SD_BUS_ARGS("s", what), SD_BUS_RESULT("h", memory), Methods::dump, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Launch", SD_BUS_ARGS("h", pidfd, "h", memory, "s", class, "s", observe),
                            SD_BUS_RESULT("b", install, "ay", program), Methods::launch, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Enroll", SD_BUS_ARGS("u", pid, "b", tree, "s", class, "b", allow_no_new_privs),
                            SD_BUS_NO_RESULT, Methods::enroll, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("EnrollPidfd", SD_BUS_ARGS("h", pidfd, "b", tree, "s", class, "b", allow_no_new_privs),
                            SD_BUS_NO_RESULT, Methods::enroll_pidfd, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Release", SD_BUS_ARGS("u", pid), SD_BUS_NO_RESULT,
                            Methods::release<Methods::Whose::argument>, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Restart", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, Methods::restart, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, Methods::restart, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Pause", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, Methods::pause<true>, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Resume", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, Methods::pause<false>, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Set", SD_BUS_ARGS("u", pid, "s", policy, "i", nice, "i", priority), SD_BUS_NO_RESULT,
                            Methods::set<Methods::Whose::argument>, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("FollowEvents", SD_BUS_ARGS("b", on), SD_BUS_NO_RESULT, Methods::follow_events,
                            open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Record", SD_BUS_ARGS("b", on), SD_BUS_NO_RESULT, Methods::record, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Subscribe", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, Methods::subscribe<true>, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Unsubscribe", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, Methods::subscribe<false>, open_to_peers),
    SD_BUS_SIGNAL_WITH_ARGS("Enrolled", SD_BUS_ARGS("u", pid), 0),
    SD_BUS_SIGNAL_WITH_ARGS("Released", SD_BUS_ARGS("u", pid), 0),
    SD_BUS_SIGNAL_WITH_ARGS(
        "InversionFound",
        SD_BUS_ARGS("u", requester_pid, "u", requester_tid, "u", provider_pid, "u", provider_tid, "s", resource), 0),
    SD_BUS_SIGNAL_WITH_ARGS("DonationBegun",
                            SD_BUS_ARGS("u", requester_pid, "u", requester_tid, "u", provider_pid, "u", provider_tid,
                                        "s", resource, "s", policy, "i", nice, "u", priority),
                            0),
    SD_BUS_SIGNAL_WITH_ARGS(
        "DonationEnded",
        SD_BUS_ARGS("u", requester_pid, "u", requester_tid, "u", provider_pid, "u", provider_tid, "s", resource), 0),
    SD_BUS_SIGNAL_WITH_ARGS("DonationIneffective",
                            SD_BUS_ARGS("u", requester_pid, "u", requester_tid, "u", provider_pid, "u", provider_tid,
                                        "s", resource, "s", reason),
                            0),
    SD_BUS_SIGNAL_WITH_ARGS("LimitReached", SD_BUS_ARGS("s", limit, "u", pid, "u", tid), 0),
    SD_BUS_SIGNAL_WITH_ARGS("SignalsLost", SD_BUS_ARGS("t", count), 0),
    SD_BUS_SIGNAL_WITH_ARGS("Event", SD_BUS_ARGS("s", json_line), 0),
    SD_BUS_SIGNAL_WITH_ARGS("Recorded", SD_BUS_ARGS("s", json_lines), 0),
    SD_BUS_PROPERTY("Version", "s", Methods::version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Pid", "u", Methods::pid, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Observer", "s", Methods::manager_property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Paused", "b", Methods::manager_property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("ManagedProcesses", "u", Methods::manager_property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("ManagedThreads", "u", Methods::manager_property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("DonationsActive", "u", Methods::manager_property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_VTABLE_END,
};

const sd_bus_vtable process_vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD_WITH_ARGS("Why", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), Methods::why<Methods::Whose::path>,
                            open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Release", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, Methods::release<Methods::Whose::path>,
                            open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Set", SD_BUS_ARGS("s", policy, "i", nice, "i", priority), SD_BUS_NO_RESULT,
                            Methods::set<Methods::Whose::path>, open_to_peers),
    SD_BUS_PROPERTY("Pid", "u", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Comm", "s", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Class", "s", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Threads", "u", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Lends", "b", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Borrows", "b", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_VTABLE_END,
};

const sd_bus_vtable class_vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_PROPERTY("Name", "s", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Description", "s", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Open", "b", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Settings", "a{ss}", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Processes", "ao", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_VTABLE_END,
};

const sd_bus_vtable resource_vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_PROPERTY("Name", "s", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Kind", "s", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Requesters", "a(uu)", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Providers", "a(uud)", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_VTABLE_END,
};

}  // namespace
int add_objects(sd_bus* bus, Manager& manager, std::vector<sd_bus_slot*>& slots) {
  struct Kind {
    const char* prefix;
    const char* interface;
    const sd_bus_vtable* vtable;
  };
  const auto slot = [&] { return &slots.emplace_back(nullptr); };
  int r = sd_bus_add_object_vtable(bus, slot(), object_path, interface_name, manager_vtable, &manager);
  if (r >= 0) r = sd_bus_add_object_manager(bus, slot(), object_path);
  for (const Kind& kind :
       {Kind{process_prefix, process_interface, process_vtable}, Kind{class_prefix, class_interface, class_vtable},
        Kind{resource_prefix, resource_interface, resource_vtable}}) {
    if (r >= 0)
      r = sd_bus_add_fallback_vtable(bus, slot(), kind.prefix, kind.interface, kind.vtable, Methods::find, &manager);
    if (r >= 0) r = sd_bus_add_node_enumerator(bus, slot(), kind.prefix, Methods::enumerate, &manager);
  }
  return r;
}

}  // namespace swapd::bus
