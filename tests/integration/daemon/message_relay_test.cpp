// Services behind a message bus that swapd does not manage: the service is helped, the bus is only looked at.

#include <filesystem>
#include <fstream>
#include <optional>
#include <tuple>
#include <utility>

#include "session.h"

namespace swapd::test {
namespace {

constexpr const char* config = R"(<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path=DIR/bus</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
)";

class MessageRelay : public ::testing::Test {
 protected:
  static bool installed(const std::string& program) {
    return run({"/bin/sh", "-c", "command -v " + program}).status == 0;
  }
  void begin(const std::string& observer = "bpf") {
    if (!installed("dbus-daemon")) GTEST_SKIP() << "dbus-daemon is not installed";
    session.emplace(std::vector<std::string>{"--observe", observer});
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
    const auto status = session->json({"status"});
    if (status["observer"] != observer) GTEST_SKIP() << status["observer_reason"];
    std::string text = config;
    text.replace(text.find("DIR"), 3, session->dir());
    std::ofstream(session->path("bus.conf")) << text;
    address = "unix:path=" + session->path("bus");
    bus = session->start_plain(
        {"taskset", "-c", "0", "dbus-daemon", "--nofork", "--nopidfile", "--config-file=" + session->path("bus.conf")});
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(session->path("bus")); }));
  }
  void TearDown() override { EXPECT_FALSE(bus_changed) << "what the bus runs at is not to be changed"; }
  // A managed service of that name, which works until the flag `NAME-flag` is there.
  pid_t serve(const std::string& name, std::vector<std::string> options = {}) {
    const pid_t pid = session->start(std::move(options), {"taskset", "-c", "0", BUS_PEER_PROGRAM, "serve", address,
                                                          "org.swapd." + name, "0", session->path(name + "-flag")});
    EXPECT_TRUE(eventually([&] { return owned(name); }));
    return pid;
  }
  bool owned(const std::string& name) const {
    return run({"busctl", "--address=" + address, "status", "org.swapd." + name}).status == 0;
  }
  // The next message wakes it.
  static void is_asleep(pid_t pid) {
    EXPECT_TRUE(eventually([&] { return status_field(pid, "State").starts_with("S"); }));
  }
  // Its first message wakes the bus.
  pid_t call(const std::string& name, int times = 1) {
    is_asleep(bus);
    return session->start({"--fifo", "50"}, {"taskset", "-c", "0", BUS_PEER_PROGRAM, "call", address,
                                             "org.swapd." + name, std::to_string(times)});
  }
  void hog() { session->start_plain({"taskset", "-c", "0", session->pair(), "spin", "40"}); }
  std::string why(pid_t pid) { return session->ctl({"why", std::to_string(pid)}).out; }
  bool becomes(pid_t pid, const std::string& policy) {
    return eventually([&] {
      bus_changed = bus_changed || kernel_attr(bus).policy != "other" || kernel_attr(bus).nice != 0;
      return kernel_attr(pid).policy == policy;
    });
  }
  bool helped(pid_t pid) {  // by whatever is lent on a guess
    return eventually([&] { return kernel_attr(pid).policy == "fifo" || kernel_attr(pid).nice < 0; });
  }
  // The first call is helped on a guess, and teaches; another one where the bus was just awake for another client.
  // An unimportant client has it compute.
  pid_t occupy(const std::string& name, pid_t service) {
    const pid_t client =
        session->start({}, {"taskset", "-c", "0", BUS_PEER_PROGRAM, "call", address, "org.swapd." + name});
    EXPECT_TRUE(eventually([&] { return status_field(service, "State").starts_with("R"); }));
    return client;
  }
  void teach(const std::string& name, pid_t service) {
    for (int calls = 0; calls < 10; ++calls) {
      const pid_t client = call(name);
      EXPECT_TRUE(helped(service)) << why(client);
      const bool known = kernel_attr(service).policy == "fifo";
      session->raise(name + "-flag");
      EXPECT_EQ(session->wait(client), 0);
      EXPECT_TRUE(eventually([&] { return kernel_attr(service).policy == "other" && kernel_attr(service).nice == 0; }));
      if (known) return is_asleep(service);
    }
    ADD_FAILURE() << "ten calls have taught nothing";
  }

  std::optional<Session> session;
  std::string address;
  pid_t bus = -1;
  bool bus_changed = false;
};

TEST_F(MessageRelay, TheServiceIsLentToAndTheBusIsNot) {
  begin();
  if (IsSkipped()) return;
  const pid_t service = serve("One");
  hog();
  teach("One", service);
  // Another process, of which nothing is known but what it runs.
  const pid_t client = call("One");
  EXPECT_TRUE(becomes(service, "fifo")) << why(client);
  const auto said = session->json({"why", std::to_string(client)})["threads"][0];
  bool named = false;
  bool relay = false;
  for (const auto& provider : said["waiting_for"][0]["providers"]) {
    // If the bus answers the connection's first message late, the service has been credited with that by now.
    const bool is_certain = provider["evidence"] == "relayed" || provider["evidence"] == "woke";
    if (provider["pid"] == service) named = is_certain && provider["favoured"] == true;
    if (provider["pid"] == bus) relay = provider["evidence"] == "relay";
  }
  EXPECT_TRUE(named && relay) << said;
  EXPECT_NE(why(client).find("dbus-daemon"), std::string::npos);
  session->raise("One-flag");
  EXPECT_EQ(session->wait(client), 0);
  EXPECT_TRUE(becomes(service, "other"));
}

// A client that stays: who has answered it on this connection is known when it asks again. (Not at once, where the bus
// was observed only after it had passed the first message on, or both have not slept between two calls.)
TEST_F(MessageRelay, ALastingClientIsHelpedInEveryCall) {
  begin();
  if (IsSkipped()) return;
  const pid_t service = serve("One");
  hog();
  constexpr int calls = 8;
  const pid_t client = call("One", calls);
  std::string said;
  const auto says = [&](const char* what) {
    return eventually([&] { return (said = why(client)).find(what) != std::string::npos; });
  };
  const auto is_known = [&] { return said.find("ended such a wait before") != std::string::npos; };
  int known = 0;
  for (int answer = 0; answer < calls; ++answer) {
    EXPECT_TRUE(says("=> bus_peer") && helped(service)) << said;
    if (known > 0) {
      EXPECT_TRUE(says("ended such a wait before") && becomes(service, "fifo")) << said;
    }
    if (known > 0 || is_known()) ++known;
    session->raise("One-flag");
    EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(session->path("One-flag")); }));
  }
  EXPECT_GE(known, 3);
  EXPECT_EQ(session->wait(client), 0);
}

TEST_F(MessageRelay, OfTwoServicesTheOneThatIsAsked) {
  begin();
  if (IsSkipped()) return;
  const pid_t one = serve("One");
  const pid_t two = serve("Two");
  hog();
  teach("One", one);
  teach("Two", two);
  for (const auto& [name, service, other] : {std::tuple("Two", two, one), std::tuple("One", one, two)}) {
    const pid_t client = call(name);
    EXPECT_TRUE(becomes(service, "fifo")) << why(client);
    EXPECT_EQ(kernel_attr(other).policy, "other");
    EXPECT_EQ(kernel_attr(other).nice, 0);
    session->raise(std::string(name) + "-flag");
    EXPECT_EQ(session->wait(client), 0);
  }
}

// The bus does not wake a service that is awake: what the service did before tells.
TEST_F(MessageRelay, AServiceThatIsBusyWithSomebodyElsesCallIsLentTo) {
  begin();
  if (IsSkipped()) return;
  const pid_t service = serve("One");
  hog();
  teach("One", service);
  const pid_t unimportant = occupy("One", service);
  const pid_t client = call("One");
  EXPECT_TRUE(becomes(service, "fifo")) << why(client);
  session->raise("One-flag");
  EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(session->path("One-flag")); }));
  session->raise("One-flag");  // of the other call
  EXPECT_EQ(session->wait(client), 0);
  EXPECT_EQ(session->wait(unimportant), 0);
}

// It has other threads than the one that the bus wakes: those are found as ever.
TEST_F(MessageRelay, AGlibServiceIsLentTo) {
  begin();
  if (IsSkipped()) return;
  if (run({"/usr/bin/python3", "-c", "from gi.repository import Gio"}).status != 0) GTEST_SKIP() << "no python3-gi";
  const std::string program = R"(
import hashlib, os, sys, time
from gi.repository import Gio, GLib
address, flag = sys.argv[1:]
bus = Gio.DBusConnection.new_for_address_sync(address, Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT |
                                              Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION, None, None)
info = Gio.DBusNodeInfo.new_for_xml("<node><interface name='org.swapd.Test'><method name='Work'>"
                                    "<arg type='u' direction='out'/></method></interface></node>")
def work(connection, sender, path, interface, method, parameters, invocation):
    end, x = time.monotonic() + 20, b"x"
    while not os.path.exists(flag) and time.monotonic() < end:
        for i in range(1000): x = hashlib.sha256(x).digest()
    os.unlink(flag)
    invocation.return_value(GLib.Variant('(u)', (os.getpid(),)))
bus.register_object('/org/swapd/test', info.interfaces[0], work, None, None)
Gio.bus_own_name_on_connection(bus, 'org.swapd.Glib', Gio.BusNameOwnerFlags.NONE, None, None)
GLib.MainLoop().run()
)";
  const pid_t service = session->start(
      {}, {"taskset", "-c", "0", "/usr/bin/python3", "-c", program, address, session->path("Glib-flag")});
  ASSERT_TRUE(eventually([&] { return owned("Glib"); }));
  hog();
  teach("Glib", service);
  const pid_t client = call("Glib");
  EXPECT_TRUE(becomes(service, "fifo")) << why(client);
  session->raise("Glib-flag");
  EXPECT_EQ(session->wait(client), 0);
}

// The service that computes is connected to the same bus, and no important client asks it for anything.
TEST_F(MessageRelay, WhoOnlyIsOnTheBusIsLentNothing) {
  begin();
  if (IsSkipped()) return;
  const pid_t service = serve("One");
  const pid_t busy = serve("Busy");
  hog();
  teach("One", service);
  const pid_t unimportant = occupy("Busy", busy);
  const pid_t client = call("One");
  EXPECT_TRUE(becomes(service, "fifo")) << why(client);
  EXPECT_EQ(kernel_attr(busy).policy, "other");
  EXPECT_EQ(kernel_attr(busy).nice, 0);
  session->raise("One-flag");
  session->raise("Busy-flag");
  EXPECT_EQ(session->wait(client), 0);
  EXPECT_EQ(session->wait(unimportant), 0);
}

// The client becomes important while it waits: no wake was recorded as the bus passed its message on. A thread that is
// on the bus and wants a CPU may be meant.
TEST_F(MessageRelay, AMessageThatWasPassedOnUnobservedIsAGuess) {
  begin();
  if (IsSkipped()) return;
  const pid_t service = serve("One");
  const pid_t client = occupy("One", service);
  hog();
  EXPECT_TRUE(eventually([&] { return status_field(bus, "State").starts_with("S"); }));
  ASSERT_EQ(session->ctl({"set", std::to_string(client), "--nice", "-15"}).status, 0);
  EXPECT_TRUE(helped(service)) << why(client);
  EXPECT_EQ(kernel_attr(bus).nice, 0);
  session->raise("One-flag");
  EXPECT_EQ(session->wait(client), 0);
  EXPECT_TRUE(eventually([&] { return kernel_attr(service).nice == 0; }));
}

// The observer does not tell whom the bus wakes: a thread that is on it and wants a CPU may be meant, and is lent a
// nice value.
TEST_F(MessageRelay, WithSeccompTheServiceIsAGuess) {
  begin("seccomp");
  if (IsSkipped()) return;
  const pid_t service = serve("One");
  hog();
  const pid_t client = call("One");
  EXPECT_TRUE(eventually([&] { return kernel_attr(service).nice < 0; })) << why(client);
  EXPECT_EQ(kernel_attr(bus).nice, 0);
  const std::string said = why(client);
  for (const char* word : {"could be meant", "dbus-daemon", "passes messages on"})
    EXPECT_NE(said.find(word), std::string::npos) << said;
  session->raise("One-flag");
  EXPECT_EQ(session->wait(client), 0);
  EXPECT_TRUE(eventually([&] { return kernel_attr(service).nice == 0; }));
}

}  // namespace
}  // namespace swapd::test
