#include "bus/manager.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <utility>

#include "bus/json.h"

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

  // For what shows other users' programs: then `show` answers.
  template <typename Show>
  static int view(sd_bus_message* call, void* data, sd_bus_error* error, Show show) {
    Caller who;
    if (const int r = caller(call, data, &who); r < 0) return r;
    return who.may(Right::view) ? show() : refuse(call, data, who, may_not_view(call), error);
  }

  // A process or thread id from the wire. Its type is unsigned there, a pid is not.
  static int read_pid(sd_bus_message* call, pid_t* pid, sd_bus_error* error) {
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

  static int why(sd_bus_message* call, void* data, sd_bus_error* error) {
    pid_t pid = 0;
    if (const int r = read_pid(call, &pid, error); r < 0) return r;
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
    EnrollRequest request;
    if (const int r = read_pid(call, &request.pid, error); r < 0) return r;
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

  static int release(sd_bus_message* call, void* data, sd_bus_error* error) {
    pid_t pid = 0;
    if (const int r = read_pid(call, &pid, error); r < 0) return r;
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

  static int set(sd_bus_message* call, void* data, sd_bus_error* error) {
    pid_t pid = 0;
    if (const int r = read_pid(call, &pid, error); r < 0) return r;
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

  static int follow_events(sd_bus_message* call, void* data, sd_bus_error* error) {
    int on = 0;
    if (const int r = sd_bus_message_read(call, "b", &on); r < 0) return r;
    Caller who;
    if (const int r = caller(call, data, &who); r < 0) return r;
    if (!who.may(Right::record)) return refuse(call, data, who, may_not_view(call), error);
    const char* sender = sd_bus_message_get_sender(call);
    // The answer goes first: no event may reach a client before it knows that it follows.
    const int r = sd_bus_reply_method_return(call, nullptr);
    self(data).follow(sd_bus_message_get_bus(call), sender == nullptr ? "" : sender, on != 0);
    return r;
  }

  static int record(sd_bus_message* call, void* data, sd_bus_error* error) {
    int on = 0;
    if (const int r = sd_bus_message_read(call, "b", &on); r < 0) return r;
    const char* sender = sd_bus_message_get_sender(call);
    sd_bus* bus = sd_bus_message_get_bus(call);
    Manager& manager = self(data);
    Caller who;
    if (const int r = caller(call, data, &who); r < 0) return r;
    if (!who.may(Right::record)) return refuse(call, data, who, may_not_view(call), error);
    if (on != 0) return done(call, data, who, manager.record(bus, sender == nullptr ? "" : sender), error);
    if (manager.recorder_.bus != bus || manager.recorder_.name != (sender == nullptr ? "" : sender))
      return fail(error, Error(ENODATA, "this client does not record"));
    manager.end_recording();  // the last lines go before the answer
    return sd_bus_reply_method_return(call, nullptr);
  }

  static int version(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void* data, sd_bus_error*) {
    return sd_bus_message_append(reply, "s", self(data).backend_.version().c_str());
  }

  static int pid(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void*, sd_bus_error*) {
    return sd_bus_message_append(reply, "u", static_cast<std::uint32_t>(::getpid()));
  }
};

namespace {

// Any peer that got as far as a connection may call: the private socket lets in root and its owner only.
constexpr auto open_to_peers = SD_BUS_VTABLE_UNPRIVILEGED;

const sd_bus_vtable vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD_WITH_ARGS("Status", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), Methods::status, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Processes", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), Methods::processes, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Why", SD_BUS_ARGS("u", pid), SD_BUS_RESULT("s", json), Methods::why, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Graph", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), Methods::graph, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Policy", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), Methods::policy, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Launch", SD_BUS_ARGS("h", pidfd, "h", memory, "s", class, "s", observe),
                            SD_BUS_RESULT("b", install, "ay", program), Methods::launch, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Enroll", SD_BUS_ARGS("u", pid, "b", tree, "s", class, "b", allow_no_new_privs),
                            SD_BUS_NO_RESULT, Methods::enroll, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Release", SD_BUS_ARGS("u", pid), SD_BUS_NO_RESULT, Methods::release, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Restart", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, Methods::restart, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Pause", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, Methods::pause<true>, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Resume", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, Methods::pause<false>, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Set", SD_BUS_ARGS("u", pid, "s", policy, "i", nice, "i", priority), SD_BUS_NO_RESULT,
                            Methods::set, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("FollowEvents", SD_BUS_ARGS("b", on), SD_BUS_NO_RESULT, Methods::follow_events,
                            open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Record", SD_BUS_ARGS("b", on), SD_BUS_NO_RESULT, Methods::record, open_to_peers),
    SD_BUS_SIGNAL_WITH_ARGS("Event", SD_BUS_ARGS("s", json_line), 0),
    SD_BUS_SIGNAL_WITH_ARGS("Recorded", SD_BUS_ARGS("s", json_lines), 0),
    SD_BUS_PROPERTY("Version", "s", Methods::version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Pid", "u", Methods::pid, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_VTABLE_END,
};

}  // namespace

Manager::Manager(Backend& backend, std::uint64_t max_queued, std::uint32_t requests)
    : backend_(backend), max_queued_(max_queued), requests_(requests) {}

Manager::~Manager() {
  if (collecting_) backend_.follow_events({});
  end_recording();
}

Status Manager::attach(sd_bus* bus, sd_bus_slot** slot) {
  const int r = sd_bus_add_object_vtable(bus, slot, object_path, interface_name, vtable, this);
  if (r < 0) return Error(-r, "adding the object to a connection");
  return Done{};
}

void Manager::use(sd_bus* bus, Authority* authority) {
  authority_bus_ = bus;
  authority_ = authority;
}

bool Manager::has_grant(const sd_bus_message* call) const {
  return std::ranges::any_of(grants_, [&](const Grant& g) { return g.call.get() == call; });
}

bool Manager::may_ask(sd_bus_message* call) const {
  return authority_ != nullptr && sd_bus_message_get_bus(call) == authority_bus_;
}

// On the private socket, which only root and its owner get to, one sees all. On a message bus polkit is asked.
Rights Manager::rights_of(sd_bus_message* call, std::uint32_t uid) {
  if (uid == 0) return all_rights;
  Rights has;
  if (!may_ask(call)) has.add({Right::view, Right::record, Right::manage_own});
  if (uid == ::geteuid()) has.add({Right::view, Right::record, Right::manage_own, Right::administer});
  const auto granted = std::ranges::find_if(grants_, [&](const Grant& g) { return g.call.get() == call; });
  if (granted == grants_.end()) return has;
  has.add(granted->rights);
  grants_.erase(granted);
  return has;
}

bool Manager::ask(sd_bus_message* call, const Caller& caller, const Error& refusal) {
  const std::optional<Right> lacks = caller.missing();
  if (!lacks || !may_ask(call) || (refusal.code() != EACCES && refusal.code() != EPERM)) return false;
  const std::shared_ptr<sd_bus_message> kept(sd_bus_message_ref(call), sd_bus_message_unref);
  const auto answered = [this, kept, right = *lacks, caller, refusal](Authority::Verdict verdict) {
    // Without polkit everybody may manage his own.
    const bool granted =
        verdict == Authority::Verdict::granted || (verdict == Authority::Verdict::absent && right == Right::manage_own);
    if (!granted || !come_again(kept, caller.rights(), right)) refused(kept.get(), caller, right, verdict, refusal);
  };
  authority_->ask(call, caller.uid(), *lacks, answered);
  return true;
}

bool Manager::come_again(const std::shared_ptr<sd_bus_message>& call, Rights has, Right right) {
  has.add(right);
  grants_.push_back({call, has});
  if (sd_bus_message_rewind(call.get(), 1) >= 0 && sd_bus_enqueue_for_read(authority_bus_, call.get()) >= 0)
    return true;
  grants_.pop_back();
  return false;
}

void Manager::refused(sd_bus_message* call, const Caller& caller, Right right, Authority::Verdict verdict,
                      const Error& why) {
  using Verdict = Authority::Verdict;
  const std::string wanted(action(right));
  std::string line = why.context();
  if (verdict == Verdict::denied) line += "; polkit does not allow " + wanted;
  if (verdict == Verdict::challenge)
    line += "; polkit would ask for a password (" + wanted +
            "), which this client does not let it, or there is nobody to ask";
  if (verdict == Verdict::busy) line += "; this user has too many questions before polkit";
  const char* name = verdict == Verdict::challenge ? error_name::needs_password
                     : verdict == Verdict::busy    ? error_name::limits_exceeded
                                                   : error_name::access_denied;
  (void)sd_bus_reply_method_errorf(call, name, "%s", valid_utf8(line).c_str());
  // The methods that are about a process have its id in front.
  std::uint32_t pid = 0;
  if (sd_bus_message_rewind(call, 1) < 0 || sd_bus_message_read(call, "u", &pid) <= 0 || pid > INT32_MAX) pid = 0;
  std::string member = sd_bus_message_get_member(call);
  std::ranges::transform(member, member.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  backend_.refused(member, static_cast<pid_t>(pid), caller, Error(why.code(), line));
}

std::string Manager::too_often(std::uint32_t uid) {
  if (uid == 0 || requests_ == 0) return "";
  constexpr std::size_t most_users = 1024;
  const Time now = SteadyClock().now();
  if (asked_.size() >= most_users) std::erase_if(asked_, [&](const auto& user) { return user.second.full(now); });
  if (asked_.try_emplace(uid, requests_, requests_, now).first->second.take(now)) return "";
  return "too many requests: user " + std::to_string(uid) + " may make " + std::to_string(requests_) +
         " a second ([quota] requests in the policy)";
}

void Manager::forget(sd_bus* bus) {
  std::erase_if(followers_, [&](const Follower& f) { return f.bus == bus; });
  update_backend();
  if (recorder_.bus != bus) return;
  recorder_.bus = nullptr;  // it gets nothing more
  backend_.end_recording();
}

void Manager::forget(sd_bus* bus, std::string_view name) {
  follow(bus, name, false);
  if (recorder_.bus == bus && recorder_.name == name) end_recording();
}

bool Manager::follows(const sd_bus* bus) const {
  return recorder_.bus == bus ||
         std::any_of(followers_.begin(), followers_.end(), [&](const Follower& f) { return f.bus == bus; });
}

void Manager::follow(sd_bus* bus, std::string_view name, bool on) {
  const auto same = [&](const Follower& f) { return f.bus == bus && f.name == name; };
  const bool known = std::any_of(followers_.begin(), followers_.end(), same);
  if (on && !known) followers_.push_back({bus, std::string(name), 0});
  if (!on && known) std::erase_if(followers_, same);
  update_backend();
}

// Collecting events costs the engine something: only while there is a follower.
void Manager::update_backend() {
  const bool wanted = !followers_.empty();
  if (wanted == collecting_) return;
  collecting_ = wanted;
  if (wanted)
    backend_.follow_events([this](const EventView& event) { send(event); });
  else
    backend_.follow_events({});
}

void Manager::send(const EventView& event) {
  const std::string line = event_json(event);
  for (Follower& follower : followers_) {
    std::uint64_t queued = 0;
    if (sd_bus_get_n_queued_write(follower.bus, &queued) < 0) continue;  // closing; forget() comes
    if (queued < max_queued_ && follower.missed > 0) {
      EventView lost;
      lost.time = event.time;
      lost.type = "events-lost";
      lost.numbers["count"] = static_cast<double>(follower.missed);
      if (send_line(follower, "Event", event_json(lost))) follower.missed = 0;
    }
    if (queued >= max_queued_ || !send_line(follower, "Event", line)) {
      ++follower.missed;
      ++dropped_;
    }
  }
}

Status Manager::record(sd_bus* bus, std::string_view name) {
  const Follower asking{bus, std::string(name), 0};
  Status begun = backend_.record([this](std::string_view lines) { return send_recorded(lines); });
  if (begun) recorder_ = asking;
  return begun;
}

void Manager::end_recording() {
  if (recorder_.bus == nullptr) return;
  backend_.end_recording();
  recorder_.bus = nullptr;
}

bool Manager::send_recorded(std::string_view lines) const {
  std::uint64_t queued = 0;
  if (recorder_.bus == nullptr || sd_bus_get_n_queued_write(recorder_.bus, &queued) < 0) return false;
  if (queued >= max_queued_ / 2) return false;  // a piece is larger than an event
  return lines.empty() || send_line(recorder_, "Recorded", std::string(lines));
}

bool Manager::send_line(const Follower& follower, const char* signal, const std::string& line) {
  sd_bus_message* message = nullptr;
  if (sd_bus_message_new_signal(follower.bus, &message, object_path, interface_name, signal) < 0) return false;
  int r = sd_bus_message_append(message, "s", line.c_str());
  if (r >= 0 && !follower.name.empty()) r = sd_bus_message_set_destination(message, follower.name.c_str());
  if (r >= 0) r = sd_bus_send(follower.bus, message, nullptr);
  sd_bus_message_unref(message);
  return r >= 0;
}

}  // namespace swapd::bus
