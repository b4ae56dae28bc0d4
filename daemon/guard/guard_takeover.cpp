#include "guard/guard_takeover.h"

#include <sys/socket.h>

#include <chrono>
#include <filesystem>
#include <utility>

#include "base/unix_address.h"
#include "guard/guard.h"
#include "guard/guard_messages.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::daemon {
namespace {

constexpr std::chrono::seconds handed_within{2};

Result<Fd> knock(const std::string& path) {
  const auto address = unix_address(path);
  if (!address) return Error(ENAMETOOLONG, path);
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket || ::connect(socket.get(), address->get(), address->size) != 0) return errno_error(path);
  return socket;
}

// "guard.PID"; other sockets in there are not a guard's.
bool is_guards(const std::string& name) {
  return name.starts_with(guard_prefix) && name.size() > guard_prefix.size() &&
         name.find_first_not_of("0123456789", guard_prefix.size()) == std::string::npos;
}

}  // namespace

std::vector<OrphanGuard> OrphanGuard::find(const std::string& state_dir) {
  std::vector<OrphanGuard> found;
  std::vector<std::filesystem::path> dead;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(state_dir, none)) {
    if (!is_guards(entry.path().filename().string()) || !entry.is_socket(none)) continue;
    auto socket = knock(entry.path());
    if (socket)
      found.push_back(OrphanGuard(std::move(socket).value()));
    else if (socket.error().code() == ECONNREFUSED)
      dead.push_back(entry.path());
  }
  for (const auto& path : dead) std::filesystem::remove(path, none);
  return found;
}

Result<std::vector<OrphanListener>> OrphanGuard::take() {
  std::vector<OrphanListener> all;
  for (std::uint32_t i = 0;; ++i) {
    GuardMessage question;
    question.kind = GuardMessage::Kind::take;
    question.sequence = i;
    if (Status sent = send_message(socket_.get(), question); !sent) return std::move(sent).error();
    auto answer = await_message(socket_.get(), handed_within);
    if (!answer) return std::move(answer).error();
    if (answer->message.sequence != i) return Error(EPROTO, "an earlier guard answers out of turn");
    if (answer->message.kind == GuardMessage::Kind::end) return all;
    if (answer->truncated) return Error(EMFILE, "taking over an earlier guard's listeners");
    if (answer->fd && !sys::is_listener(answer->fd.get())) return Error(EPROTO, "what it gives is no listener");
    if (answer->fd) all.push_back({std::move(answer->fd), i, answer->message.pid, answer->message.last_id});
  }
}

Status OrphanGuard::done(std::uint32_t index) {
  GuardMessage last;
  last.sequence = index;
  last.kind = GuardMessage::Kind::done;
  return send_message(socket_.get(), last);
}

}  // namespace swapd::daemon
