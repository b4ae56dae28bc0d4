// A bus::Server with a FakeBackend on a thread of its own, as the control thread of swapd has it, and a socket in a
// temporary directory. `call` runs something on that thread: only there may server and backend be touched.
#pragma once

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "base/fd.h"
#include "bus/server.h"
#include "fakes/fake_backend.h"

namespace swapd::fakes {

class BusThread {
 public:
  explicit BusThread(bus::ServerLimits limits = {}) {
    std::string name = (std::filesystem::temp_directory_path() / "swapd-test-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    path_ = directory_ + "/run/swapd.sock";
    wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    std::promise<Status> listening;
    thread_ = std::thread([&, limits] { serve(limits, listening); });
    listening_ = listening.get_future().get();
  }
  BusThread(const BusThread&) = delete;
  BusThread& operator=(const BusThread&) = delete;
  ~BusThread() {
    call([&] { sd_event_exit(loop_, 0); });
    thread_.join();
    std::filesystem::remove_all(directory_);
  }

  void call(const std::function<void()>& what) {
    std::promise<void> done;
    task_ = [&] {
      what();
      done.set_value();
    };
    const std::uint64_t one = 1;
    if (::write(wake_.get(), &one, sizeof one) != sizeof one) std::abort();
    done.get_future().get();
  }
  [[nodiscard]] bus::ServerStats stats() {
    bus::ServerStats stats;
    call([&] { stats = server_->stats(); });
    return stats;
  }
  // Of the event loop.
  [[nodiscard]] std::uint64_t turns() {
    std::uint64_t count = 0;
    call([&] { sd_event_get_iteration(loop_, &count); });
    return count;
  }
  // Asks again and again until it holds; false after ten seconds.
  [[nodiscard]] bool eventually(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::chrono::steady_clock::now() < deadline) {
      bool holds = false;
      call([&] { holds = condition(); });
      if (holds) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  // A raw connection, for bytes that are not D-Bus.
  [[nodiscard]] Fd raw() const {
    Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0) fd.reset();
    return fd;
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] const Status& listening() const { return listening_; }
  [[nodiscard]] bus::Server& server() { return *server_; }
  [[nodiscard]] sd_event* loop() { return loop_; }
  [[nodiscard]] FakeBackend& backend() { return backend_; }

 private:
  void serve(bus::ServerLimits limits, std::promise<Status>& listening) {
    sd_event_new(&loop_);
    sd_event_add_io(loop_, nullptr, wake_.get(), EPOLLIN, on_wake, this);
    server_ = std::make_unique<bus::Server>(loop_, backend_, path_, limits);
    listening.set_value(server_->listen());
    sd_event_loop(loop_);
    server_.reset();
    sd_event_unref(loop_);
  }
  static int on_wake(sd_event_source*, int fd, std::uint32_t, void* data) {
    std::uint64_t count = 0;
    if (::read(fd, &count, sizeof count) == sizeof count) static_cast<BusThread*>(data)->task_();
    return 0;
  }

  std::string directory_, path_;
  Fd wake_;
  sd_event* loop_ = nullptr;
  FakeBackend backend_;
  std::unique_ptr<bus::Server> server_;
  std::function<void()> task_;
  Status listening_ = Done{};
  std::thread thread_;
};

}  // namespace swapd::fakes
