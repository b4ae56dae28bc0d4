#include "thin_client/audience.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace swapd::bench {

int StatusLines::take(std::string_view output) {
  int lines = 0;
  for (const char c : output) {
    if (last_ == 'V' && c == ':') ++lines;
    last_ = c;
  }
  return lines;
}

Status Audience::add_viewer(const std::string& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof address.sun_path) return Error(ENAMETOOLONG, socket);
  socket.copy(address.sun_path, sizeof address.sun_path - 1);
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return errno_error("connecting to the X server's " + socket);
  viewers_.push_back({std::move(fd), {}});
  return Done{};
}

Status Audience::add_player(const std::string& fifo) {
  player_ = Fd(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  return player_ ? Status(Done{}) : Status(errno_error(fifo));
}

void Audience::start() {
  thread_ = std::thread([this] { watch(); });
}

void Audience::stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

std::vector<int> Audience::updates() const {
  const std::lock_guard lock(mutex_);
  std::vector<int> all;
  for (const Viewer& viewer : viewers_) all.push_back(viewer.client.updates());
  return all;
}

std::vector<Audience::Time> Audience::frames() const {
  const std::lock_guard lock(mutex_);
  return frames_;
}

// A server that has ended, or says what the client does not speak, is not listened to any more: its updates stand
// still.
void Audience::serve(Viewer& viewer) {
  const ssize_t size = ::recv(viewer.fd.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const std::string answer =
      size > 0 ? viewer.client.take({buffer_.data(), static_cast<std::size_t>(size)}) : std::string();
  const bool said = answer.empty() || ::send(viewer.fd.get(), answer.data(), answer.size(), MSG_NOSIGNAL) ==
                                          static_cast<ssize_t>(answer.size());
  if (size <= 0 || !said || viewer.client.failed()) viewer.fd = Fd();
}

void Audience::read_player() {
  const ssize_t size = ::read(player_.get(), buffer_.data(), buffer_.size());
  const auto now = std::chrono::steady_clock::now();
  if (size > 0) frames_.insert(frames_.end(), lines_.take({buffer_.data(), static_cast<std::size_t>(size)}), now);
  if (size == 0) ::usleep(1000);  // no player yet, or none any more
}

void Audience::watch() {
  std::vector<pollfd> wanted;
  while (!stop_) {
    wanted.assign(1, {player_.get(), POLLIN, 0});  // poll(2) leaves out what is negative
    for (const Viewer& viewer : viewers_) wanted.push_back({viewer.fd.get(), POLLIN, 0});
    if (::poll(wanted.data(), wanted.size(), 20) <= 0) continue;
    const std::lock_guard lock(mutex_);
    if (wanted[0].revents != 0) read_player();
    for (std::size_t i = 0; i < viewers_.size(); ++i)
      if (wanted[i + 1].revents != 0) serve(viewers_[i]);
  }
}

}  // namespace swapd::bench
