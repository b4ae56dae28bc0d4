#include "enroll/oci_agent.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <utility>

#include "guard/guard_messages.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::daemon {
namespace {

constexpr std::size_t max_runtimes = 64, max_said = 256 * 1024;
constexpr std::uint64_t late_after_us = 5'000'000;

// EPROTO for whatever is no socket of a living process.
Result<ucred> peer_of(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0)
    return Error(EPROTO, "a container runtime that is not known");
  return peer;
}

// Numbers of processes mean the same to it as here.
bool in_our_pid_namespace(const std::string& procfs_root, pid_t pid) {
  struct stat own {
  }, other{};
  return ::stat((procfs_root + "/self/ns/pid").c_str(), &own) == 0 &&
         ::stat((procfs_root + "/" + std::to_string(pid) + "/ns/pid").c_str(), &other) == 0 &&
         own.st_ino == other.st_ino && own.st_dev == other.st_dev;
}

}  // namespace

OciAgent::Runtime::~Runtime() {
  sd_event_source_disable_unref(readable);
  sd_event_source_disable_unref(late);
}

Status OciAgent::listen(ControlLoop& loop, const std::string& path) {
  auto socket = bus::ListeningSocket::open(path, "--oci-socket");
  if (!socket) return std::move(socket).error();
  socket_.emplace(std::move(*socket));
  loop_ = loop.get();
  return loop.on_readable<&OciAgent::take_runtimes>(socket_->fd(), "container runtimes", *this);
}

// Root, or the user that the socket was given to (chown(1)).
bool OciAgent::may_hand_over(const ucred& peer) const { return peer.uid == 0 || peer.uid == socket_->owner(); }

void OciAgent::take_runtimes() {
  for (;;) {
    Fd connection(::accept4(socket_->fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) return;
    const auto peer = peer_of(connection.get());
    std::string refusal;
    if (!peer)
      refusal = peer.error().text();
    else if (!may_hand_over(*peer))
      refusal = "user " + std::to_string(peer->uid) + " is neither root nor the socket's owner";
    else if (runtimes_.size() >= max_runtimes)
      refusal = "too many at once";
    if (!refusal.empty()) {
      spdlog::warn("a container runtime was turned away at --oci-socket: {}", refusal);
      continue;
    }
    auto runtime = std::make_unique<Runtime>();
    runtime->agent = this;
    runtime->connection = std::move(connection);
    runtime->pid = peer->pid;
    if (Status followed = follow(*runtime); !followed) {
      spdlog::warn("a container runtime (process {}): {}", peer->pid, followed.error().text());
      continue;
    }
    runtimes_.push_back(std::move(runtime));
  }
}

Status OciAgent::follow(Runtime& runtime) {
  const auto on_readable = [](sd_event_source*, int, std::uint32_t, void* data) {
    auto* one = static_cast<Runtime*>(data);
    one->agent->read(*one);
    return 0;
  };
  const auto on_late = [](sd_event_source*, std::uint64_t, void* data) {
    auto* one = static_cast<Runtime*>(data);
    one->agent->finish(*one, Error(ETIMEDOUT, "it has not said all"));
    return 0;
  };
  int done = sd_event_add_io(loop_, &runtime.readable, runtime.connection.get(), EPOLLIN, on_readable, &runtime);
  if (done >= 0)
    done = sd_event_add_time_relative(loop_, &runtime.late, CLOCK_MONOTONIC, late_after_us, 0, on_late, &runtime);
  if (done < 0) return Error(-done, "listening to it");
  return Done{};
}

void OciAgent::read(Runtime& runtime) {
  std::array<char, 16 * 1024> part{};
  for (;;) {
    auto received = receive_with_fds(runtime.connection.get(), part.data(), part.size());
    if (!received && (received.error().code() == EAGAIN || received.error().code() == EINTR)) return;
    if (!received) return finish(runtime, Error(EPROTO, "it has gone before it said all"));
    for (Fd& fd : received->fds) runtime.fds.push_back(std::move(fd));
    if (received->truncated) return finish(runtime, Error(EMFILE, "a listener found no place among our descriptors"));
    runtime.said.append(part.data(), received->size);
    if (runtime.said.size() > max_said) return finish(runtime, Error(EMSGSIZE, "it says too much"));
    const auto container = read_oci_state(runtime.said);
    if (!container) return finish(runtime, container.error());
    if (*container) return finish(runtime, take(**container, runtime));
  }
}

// Listeners that came with it and were not taken are let through.
void OciAgent::finish(Runtime& runtime, const Status& end) {
  if (!end) spdlog::warn("a container runtime (process {}): {}", runtime.pid, end.error().text());
  for (Fd& fd : runtime.fds)
    if (fd && sys::is_listener(fd.get())) let_through(std::move(fd), runtime.pid);
  runtimes_.remove_if([&](const auto& one) { return one.get() == &runtime; });
}

Status OciAgent::take(const OciContainer& container, Runtime& runtime) {
  if (container.listener_at >= runtime.fds.size() || !sys::is_listener(runtime.fds[container.listener_at].get()))
    return Error(EBADF, "container '" + container.id + "' came without a seccomp listener");
  if (!in_our_pid_namespace(parts_.kernel.procfs.root(), runtime.pid))
    return Error(EXDEV, "container '" + container.id +
                            "' is not managed: its runtime is in a PID namespace of its own, so that its processes' "
                            "numbers are others here");
  auto class_name = parts_.admit(container);
  if (!class_name) return std::move(class_name).error().in("container '" + container.id + "' is not managed");
  spdlog::info("container '{}' (process {}) comes into class '{}'{}", container.id, container.pid, *class_name,
               container.limits ? " with its limits" : "");
  Fd listener = std::move(runtime.fds[container.listener_at]);
  return parts_.launches.receive({.listener = std::move(listener), .launch = container.pid, .io = container.limits},
                                 [&](Engine& e, std::shared_ptr<observe::Receiver> receiver) {
                                   e.membership().add_listener(std::move(receiver), container.pid, *class_name,
                                                               container.limits, parts_.kernel.clock.now());
                                 });
}

void OciAgent::let_through(Fd listener, pid_t pid) {
  const Status receiving = parts_.launches.receive({.listener = std::move(listener), .launch = pid, .io = false},
                                                   [pid](Engine& e, std::shared_ptr<observe::Receiver> receiver) {
                                                     e.membership().adopt_listener(std::move(receiver), pid);
                                                   });
  if (!receiving) spdlog::error("calls of a container fail from now on: {}", receiving.error().text());
}

}  // namespace swapd::daemon
