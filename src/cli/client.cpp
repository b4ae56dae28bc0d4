#include "cli/client.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "base/fd.h"
#include "base/unix_address.h"
#include "cli/failure.h"

namespace swapd::cli {
namespace {

constexpr const char* object_path = "/org/swapd1";
constexpr std::uint64_t answer_within_us = 10'000'000;
constexpr std::uint64_t restart_look_us = 10'000;
constexpr std::uint64_t enroll_within_us = 300'000'000;  // large trees, of which each process is stopped for a moment

std::string reason(int code) { return std::generic_category().message(code); }

Error no_connection(const std::string& path, int code) {
  switch (code) {
    case ENOENT:
    case ENOTDIR:
    case ECONNREFUSED:
      return failure("no swapd answers at " + path + ": start it, or give --socket PATH");
    case EACCES:
    case EPERM:
      return failure("no permission to use " + path + ": only root and the owner of the socket may");
    case EAGAIN:
      return failure("swapd at " + path + " does not take connections: it is stopped or hangs");
    default:
      return failure("cannot connect to " + path + ": " + reason(code));
  }
}

}  // namespace

Result<Client> Client::connect(const std::string& path) {
  if (path.empty()) return user_mistake("the socket path is empty: give --socket PATH");
  const auto address = unix_address(path);
  if (!address)
    return user_mistake("the socket path " + path + " is longer than 107 bytes: give a shorter --socket PATH");
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return failure("cannot open a socket: " + reason(errno));
  // connect(2) of a unix socket waits while the listener's backlog is full; the send timeout bounds that wait.
  const timeval patience{5, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (::connect(fd.get(), address->get(), address->size) < 0) return no_connection(path, errno);

  // The server says what `run` installs: it must be root's, or our own.
  ucred listener{};
  socklen_t size = sizeof listener;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &listener, &size) != 0)
    return failure("cannot tell who answers at " + path + ": " + reason(errno));
  if (listener.uid != 0 && listener.uid != ::geteuid())
    return user_mistake("who answers at " + path + " is user " + std::to_string(listener.uid) +
                        ", neither root nor you: give the --socket PATH of a swapd");

  sd_bus* bus = nullptr;
  if (const int r = sd_bus_new(&bus); r < 0) return failure("cannot make a connection: " + reason(-r));
  Client client(bus, path);
  if (const int r = sd_bus_set_fd(bus, fd.get(), fd.get()); r < 0) return client.broken(r);
  static_cast<void>(fd.release());  // the connection closes it
  int r = sd_bus_negotiate_fds(bus, 1);
  if (r >= 0) r = sd_bus_set_method_call_timeout(bus, answer_within_us);
  if (r >= 0) r = sd_bus_start(bus);
  if (r < 0) return client.broken(r);
  return client;
}

Result<std::string> Client::why(pid_t pid) {
  Result<Message> message = new_call("Why");
  if (!message) return std::move(message).error();
  if (const int r = sd_bus_message_append(message->get(), "u", pid); r < 0) return broken(r);
  return text_of(call(std::move(message).value()));
}

Status Client::set_class(const std::string& name, const std::vector<Limit>& limits, bool make) {
  Result<Message> message = new_call(make ? "CreateClass" : "SetClass");
  if (!message) return std::move(message).error();
  int r = sd_bus_message_append(message->get(), "s", name.c_str());
  if (r >= 0) r = sd_bus_message_open_container(message->get(), 'a', "(sss)");
  for (const Limit& limit : limits)
    if (r >= 0)
      r = sd_bus_message_append(message->get(), "(sss)", limit.device.c_str(), limit.key.c_str(), limit.value.c_str());
  if (r >= 0) r = sd_bus_message_close_container(message->get());
  if (r < 0) return broken(r);
  Result<Message> answer = call(std::move(message).value());
  if (!answer) return std::move(answer).error();
  return Done{};
}

Status Client::remove_class(const std::string& name) {
  Result<Message> message = new_call("RemoveClass");
  if (!message) return std::move(message).error();
  if (const int r = sd_bus_message_append(message->get(), "s", name.c_str()); r < 0) return broken(r);
  Result<Message> answer = call(std::move(message).value());
  if (!answer) return std::move(answer).error();
  return Done{};
}

Status Client::set(pid_t pid, const AskedPriority& base) {
  Result<Message> message = new_call("Set");
  if (!message) return std::move(message).error();
  const std::string policy(base.nice_alone ? "nice" : name(base.attr.policy));
  const int r = sd_bus_message_append(message->get(), "usii", pid, policy.c_str(), static_cast<int>(base.attr.nice),
                                      static_cast<int>(base.attr.rt_priority));
  if (r < 0) return broken(r);
  Result<Message> answer = call(std::move(message).value());
  if (!answer) return std::move(answer).error();
  return Done{};
}

Result<LaunchAnswer> Client::launch(int pidfd, int memory, const std::string& class_name, const std::string& observe) {
  Result<Message> message = new_call("Launch");
  if (!message) return std::move(message).error();
  int r = sd_bus_message_append(message->get(), "hhss", pidfd, memory, class_name.c_str(), observe.c_str());
  if (r < 0) return broken(r);
  Result<Message> reply = call(std::move(message).value());
  if (!reply) return std::move(reply).error();
  int install = 0;
  const void* bytes = nullptr;
  std::size_t size = 0;
  r = sd_bus_message_read(reply->get(), "b", &install);
  if (r >= 0) r = sd_bus_message_read_array(reply->get(), 'y', &bytes, &size);
  if (r < 0) return broken(r);
  LaunchAnswer answer;
  answer.install = install != 0;
  if (size % sizeof(sock_filter) != 0) return broken(-EBADMSG);
  answer.program.resize(size / sizeof(sock_filter));
  if (size > 0) std::memcpy(answer.program.data(), bytes, size);
  return answer;
}

Status Client::follow(const std::function<bool(const std::string&)>& sink) {
  Result<Message> message = new_call("FollowEvents");
  if (!message) return std::move(message).error();
  if (const int r = sd_bus_message_append(message->get(), "b", 1); r < 0) return broken(r);
  Result<Message> answer = call(std::move(message).value());
  if (!answer) return std::move(answer).error();
  for (;;) {
    sd_bus_message* raw = nullptr;
    int r = sd_bus_process(bus_.get(), &raw);
    const Message event(raw);
    if (r < 0) return broken(r);
    if (event && sd_bus_message_is_signal(raw, interface_name, "Event") > 0) {
      const char* line = nullptr;
      if (sd_bus_message_read(raw, "s", &line) < 0) return broken(-EBADMSG);
      if (!sink(line)) return Done{};
    } else if (event && sd_bus_message_is_signal(raw, "org.freedesktop.DBus.Local", "Disconnected") > 0) {
      return broken(-ECONNRESET);
    }
    if (r > 0) continue;  // more may be queued
    r = sd_bus_wait(bus_.get(), UINT64_MAX);
    if (r < 0 && r != -EINTR) return broken(r);
  }
}

Result<std::string> Client::ask(const char* method) {
  Result<Message> message = new_call(method);
  if (!message) return std::move(message).error();
  return text_of(call(std::move(message).value()));
}

Status Client::command(const char* method) {
  Result<Message> message = new_call(method);
  if (!message) return std::move(message).error();
  Result<Message> answer = call(std::move(message).value());
  if (!answer) return std::move(answer).error();
  return Done{};
}

Status Client::enroll(pid_t pid, bool tree, const std::string& class_name, bool allow_no_new_privs) {
  Result<Message> message = new_call("Enroll");
  if (!message) return std::move(message).error();
  if (const int r = sd_bus_message_append(message->get(), "ubsb", pid, tree ? 1 : 0, class_name.c_str(),
                                          allow_no_new_privs ? 1 : 0);
      r < 0)
    return broken(r);
  Result<Message> answer = call(std::move(message).value(), enroll_within_us);
  if (!answer) return std::move(answer).error();
  return Done{};
}

Status Client::restart() {
  Result<Message> message = new_call("Restart");
  if (!message) return std::move(message).error();
  Result<Message> answer = call(std::move(message).value());
  if (!answer) return std::move(answer).error();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::microseconds(answer_within_us);
  while (sd_bus_is_open(bus_.get()) > 0 && std::chrono::steady_clock::now() < deadline) {
    if (sd_bus_process(bus_.get(), nullptr) == 0) (void)sd_bus_wait(bus_.get(), restart_look_us);
  }
  for (;;) {
    Result<Client> next = connect(path_);
    if (next && next->status()) return Done{};
    if (std::chrono::steady_clock::now() > deadline)
      return failure("swapd at " + path_ + " has ended, and does not come back (its log tells why)");
    std::this_thread::sleep_for(std::chrono::microseconds(restart_look_us));
  }
}

Status Client::command(const char* method, pid_t pid) {
  Result<Message> message = new_call(method);
  if (!message) return std::move(message).error();
  if (const int r = sd_bus_message_append(message->get(), "u", pid); r < 0) return broken(r);
  Result<Message> answer = call(std::move(message).value());
  if (!answer) return std::move(answer).error();
  return Done{};
}

Result<Client::Message> Client::new_call(const char* method) {
  sd_bus_message* message = nullptr;
  const int r = sd_bus_message_new_method_call(bus_.get(), &message, nullptr, object_path, interface_name, method);
  if (r < 0) return broken(r);
  return Message(message);
}

Result<Client::Message> Client::call(Message message, std::uint64_t within_us) {
  sd_bus_error error{};
  sd_bus_message* answer = nullptr;
  const int r = sd_bus_call(bus_.get(), message.get(), within_us, &error, &answer);
  if (r >= 0) return Message(answer);
  Error result = broken(r);
  if (error.name != nullptr && error.message != nullptr) {
    const std::string_view kind = error.name;
    if (kind == "org.swapd1.Error.InvalidArgument")
      result = Error(EINVAL, error.message);
    else if (kind == "org.swapd1.Error.NotFound")
      result = Error(ENOENT, error.message);
    else if (kind == "org.swapd1.Error.Failed" || kind == SD_BUS_ERROR_LIMITS_EXCEEDED ||
             kind == SD_BUS_ERROR_ACCESS_DENIED)
      result = failure(error.message);
    else if (kind == SD_BUS_ERROR_UNKNOWN_METHOD)
      result = failure("swapd at " + path_ + " is older than this swapctl and cannot do that: restart it");
  }
  sd_bus_error_free(&error);
  return result;
}

Result<std::string> Client::text_of(Result<Message> answer) {
  if (!answer) return std::move(answer).error();
  const char* text = nullptr;
  if (const int r = sd_bus_message_read(answer->get(), "s", &text); r < 0) return broken(r);
  return std::string(text);
}

Error Client::broken(int r) const {
  switch (-r) {
    case ECONNRESET:
    case EPIPE:
    case ENOTCONN:
    case ESHUTDOWN:
      return failure("swapd at " + path_ + " closed the connection: it has ended, or refuses this user");
    case ETIMEDOUT:
      return failure("swapd at " + path_ + " does not answer: it is stopped or hangs");
    default:
      return failure("no understanding with swapd at " + path_ + ": " + reason(-r));
  }
}

}  // namespace swapd::cli
