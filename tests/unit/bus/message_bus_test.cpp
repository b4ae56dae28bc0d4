// A message bus that delivers calls, but does not say who calls.
#include "bus/message_bus.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/fd.h"
#include "fakes/fake_backend.h"

namespace swapd::bus {
namespace {

// Greets its one client, gives it its name, and calls Status in the name of another client; of that one it says
// nothing.
class SilentBus {
 public:
  explicit SilentBus(const std::string& path) : listening_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    if (::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listening_.get(), 1) != 0)
      std::abort();
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  // The error that Status has ended with; empty: it has not.
  [[nodiscard]] std::string refusal() {
    const std::lock_guard lock(mutex_);
    return refusal_;
  }

 private:
  void serve(const std::stop_token& stop) {
    const int client = ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    sd_bus* bus = nullptr;
    sd_id128_t id{};
    if (sd_id128_randomize(&id) < 0 || sd_bus_new(&bus) < 0 || sd_bus_set_fd(bus, client, client) < 0 ||
        sd_bus_set_server(bus, 1, id) < 0 || sd_bus_add_filter(bus, nullptr, on_message, this) < 0 ||
        sd_bus_start(bus) < 0)
      std::abort();
    while (!stop.stop_requested())
      if (const int r = sd_bus_process(bus, nullptr); r < 0 || (r == 0 && sd_bus_wait(bus, 20'000) < 0)) break;
    sd_bus_close_unref(bus);
  }
  static int on_message(sd_bus_message* message, void* data, sd_bus_error*) {
    auto& self = *static_cast<SilentBus*>(data);
    std::uint8_t type = 0;
    (void)sd_bus_message_get_type(message, &type);
    if (type == SD_BUS_MESSAGE_METHOD_ERROR) {
      const std::lock_guard lock(self.mutex_);
      self.refusal_ = sd_bus_message_get_error(message)->message;
    }
    if (type != SD_BUS_MESSAGE_METHOD_CALL) return 1;
    const std::string_view member = sd_bus_message_get_member(message);
    if (member == "Hello") return sd_bus_reply_method_return(message, "s", ":1.1");
    if (member == "AddMatch") return sd_bus_reply_method_return(message, "");
    if (member != "RequestName") return 1;
    if (const int r = sd_bus_reply_method_return(message, "u", 1); r < 0) return r;
    sd_bus_message* call = nullptr;
    int r = sd_bus_message_new_method_call(sd_bus_message_get_bus(message), &call, ":1.1", "/org/swapd1",
                                           "org.swapd1.Manager", "Status");
    if (r >= 0) r = sd_bus_message_set_sender(call, ":1.7");
    std::uint64_t serial = 0;  // asked for: so an answer is wanted
    if (r >= 0) r = sd_bus_send(sd_bus_message_get_bus(message), call, &serial);
    sd_bus_message_unref(call);
    return r < 0 ? r : 1;
  }

  Fd listening_;
  std::mutex mutex_;
  std::string refusal_;
  std::jthread thread_;
};

TEST(MessageBus, WhoIsNotNamedIsRefusedInTime) {
  std::string dir = testing::TempDir() + "swapd-silent-XXXXXX";
  ASSERT_NE(::mkdtemp(dir.data()), nullptr);
  {
    SilentBus silent(dir + "/bus");
    ::setenv("DBUS_SESSION_BUS_ADDRESS", ("unix:path=" + dir + "/bus").c_str(), 1);
    sd_event* loop = nullptr;
    ASSERT_GE(sd_event_new(&loop), 0);
    fakes::FakeBackend backend;
    Manager manager(backend);
    {
      MessageBus bus(loop, manager, [](const std::string&) {});
      const Status served = bus.serve(MessageBus::Which::session);
      ASSERT_TRUE(served.ok()) << served.error().text();
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (silent.refusal().empty() && std::chrono::steady_clock::now() < end)
        ASSERT_GE(sd_event_run(loop, 20'000), 0);
      EXPECT_EQ(silent.refusal(), "the bus does not say who asks");
      EXPECT_EQ(backend.status_calls, 0);
    }
    sd_event_unref(loop);
  }
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace swapd::bus
