#include "thin_client/pages.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace swapd::bench {
namespace {

constexpr int rows = 40, columns = 6;
constexpr std::string_view next_path = "GET /page/";

}  // namespace

// A heading, a table and boxes with colours of their own. Two frames after the load event the page is on the screen.
std::string page(int number) {
  std::string text = "<!doctype html><title>" + std::to_string(number) + "</title><body style='background:hsl(" +
                     std::to_string(number * 47 % 360) + ",40%,90%)'><h1>Page " + std::to_string(number) +
                     "</h1><table>";
  for (int row = 0; row < rows; ++row) {
    text += "<tr>";
    for (int column = 0; column < columns; ++column) {
      const int value = (number + row * 31 + column * 17) * 7919 % 10'000;
      text += "<td style='padding:4px;background:linear-gradient(90deg,hsl(" + std::to_string(value % 360) +
              ",70%,70%),white)'>Cell " + std::to_string(value) + " of a table</td>";
    }
    text += "</tr>";
  }
  return text +
         "</table><script>onload=()=>requestAnimationFrame(()=>requestAnimationFrame(()=>location.replace('/page/" +
         std::to_string(number + 1) + "')))</script>";
}

PageServer::~PageServer() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

Status PageServer::start() {
  listener_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (!listener_ || ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(listener_.get(), 16) != 0 ||
      ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return errno_error("a web server on the loopback");
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
  return Done{};
}

std::string PageServer::first() const { return "http://127.0.0.1:" + std::to_string(port_) + "/page/1"; }

std::vector<PageServer::Time> PageServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

// One request a connection; a browser opens connections before it needs them, so none may keep the others waiting.
void PageServer::serve() {
  std::vector<pollfd> open = {{listener_.get(), POLLIN, 0}};
  while (!stop_) {
    if (::poll(open.data(), open.size(), 20) <= 0) continue;
    for (std::size_t i = open.size() - 1; i > 0; --i) {
      if (open[i].revents == 0) continue;
      answer(open[i].fd);
      ::close(open[i].fd);
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (open[0].revents == 0) continue;
    if (const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC); fd >= 0)
      open.push_back({fd, POLLIN, 0});
  }
  for (std::size_t i = 1; i < open.size(); ++i) ::close(open[i].fd);
}

void PageServer::answer(int connection) {
  std::array<char, 4096> request{};
  const ssize_t size = ::recv(connection, request.data(), request.size() - 1, MSG_DONTWAIT);
  const std::string_view asked(request.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  std::string body;
  if (asked.starts_with(next_path)) {
    body = page(std::atoi(request.data() + next_path.size()));
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::chrono::steady_clock::now());
  }
  const std::string text = std::string(body.empty() ? "HTTP/1.1 404 Not Found" : "HTTP/1.1 200 OK") +
                           "\r\nContent-Type: text/html\r\nCache-Control: no-store\r\nConnection: close\r\n"
                           "Content-Length: " +
                           std::to_string(body.size()) + "\r\n\r\n" + body;
  (void)!::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
}

}  // namespace swapd::bench
