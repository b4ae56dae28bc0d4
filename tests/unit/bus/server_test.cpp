// The object on the private socket: each method as a client sees it, errors by name, events, introspection.
#include "bus/server.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bus_client.h"
#include "fakes/bus_fixture.h"

namespace swapd::bus {
namespace {

using fakes::BusThread;
using fakes::FakeBackend;
using nlohmann::json;
using testing::StartsWith;

TEST(Server, AnswersEachSnapshot) {
  BusThread bus;
  ASSERT_TRUE(bus.listening().ok()) << bus.listening().error().text();
  BusClient client(bus);
  EXPECT_EQ(json::parse(client.text("Status"))["managed_threads"], 4);
  EXPECT_EQ(json::parse(client.text("Processes"))["threads"].size(), 3U);
  EXPECT_EQ(json::parse(client.text("Graph"))["nodes"].size(), 3U);
  EXPECT_EQ(json::parse(client.text("Policy"))["settings"][1]["where"], "/etc/swapd/swapd.toml:3");
  EXPECT_EQ(json::parse(client.text("Why", "u", 203U))["threads"][0]["comm"], "server");
  EXPECT_EQ(client.property("Version", "s"), "0.1.0");
  EXPECT_EQ(client.property("Pid", "u"), std::to_string(::getpid()));
}

TEST(Server, PassesCommandsOnWithTheCallersUid) {
  BusThread bus;
  BusClient client(bus);
  EXPECT_EQ(client.command("Set", "usii", 100U, "rr", 0, 7), "");
  EXPECT_EQ(client.command("Set", "usii", 100U, "other", -5, 0), "");
  EXPECT_EQ(client.command("Release", "u", 100U), "");
  EXPECT_EQ(client.command("Thaw", "u", 100U), "");
  bus.call([&] {
    EXPECT_EQ(bus.backend().thawed, (std::vector<std::pair<pid_t, std::uint32_t>>{{100, ::geteuid()}}));
    const auto& sets = bus.backend().sets;
    ASSERT_EQ(sets.size(), 2U);
    EXPECT_EQ(sets[0].base.policy, SchedPolicy::rr);
    EXPECT_EQ(sets[0].base.rt_priority, 7);
    EXPECT_EQ(sets[0].uid, ::geteuid());
    EXPECT_EQ(sets[1].base, FakeBackend::nice(-5));
    EXPECT_EQ(bus.backend().released, (std::vector<std::pair<pid_t, std::uint32_t>>{{100, ::geteuid()}}));
  });
}

TEST(Server, NamesErrorsAfterWhoseMistakeTheyAre) {
  BusThread bus;
  BusClient client(bus);
  EXPECT_EQ(client.command("Set", "usii", 100U, "fifo", 0, 100),
            "org.swapd1.Error.InvalidArgument: real-time priority 100 is not in 1…92 (swapd itself has the next)");
  EXPECT_EQ(client.command("Set", "usii", 100U, "rr", 0, 93),
            "org.swapd1.Error.InvalidArgument: real-time priority 93 is not in 1…92 (swapd itself has the next)");
  EXPECT_EQ(client.command("Set", "usii", 100U, "nice", 20, 0),
            "org.swapd1.Error.InvalidArgument: nice value 20 is not in -20…19");
  EXPECT_EQ(client.command("Set", "usii", 100U, "other", 20, 0),
            "org.swapd1.Error.InvalidArgument: nice value 20 is not in -20…19");
  EXPECT_EQ(client.command("Set", "usii", 100U, "deadline", 0, 0),
            "org.swapd1.Error.InvalidArgument: 'deadline' is not one of nice, other, batch, idle, fifo, rr");
  EXPECT_EQ(client.command("Release", "u", 0U), "org.swapd1.Error.InvalidArgument: 0 is not a process id");
  EXPECT_EQ(client.command("Release", "u", 0x80000000U),
            "org.swapd1.Error.InvalidArgument: 2147483648 is not a process id");
  EXPECT_EQ(client.command("Release", "u", 999U), "org.swapd1.Error.NotFound: no managed process has the id 999");
  EXPECT_EQ(client.command("Why", "u", 999U), "org.swapd1.Error.NotFound: no managed process or thread has the id 999");
  EXPECT_EQ(client.command("Enroll", "ubsb", 999U, 0, "", 0),
            "org.swapd1.Error.Failed: start the program with swapctl run");
  bus.call([&] { bus.backend().why_error = Error(EIO, "bad \xff byte"); });
  EXPECT_EQ(client.command("Why", "u", 5U), "org.swapd1.Error.Failed: bad \xEF\xBF\xBD byte");
  EXPECT_EQ(client.command("Nothing", ""),
            std::string(SD_BUS_ERROR_UNKNOWN_METHOD) + ": Unknown method Nothing or interface org.swapd1.Manager.");
}

// Limits are rows of device, key and value.
TEST(Server, ClassesAreShownAndChanged) {
  BusThread bus;
  BusClient client(bus);
  const json all = json::parse(client.text("Classes"));
  EXPECT_EQ(all["classes"][0],
            json::parse(R"({"name":"default","mode":"logical","inherit":"join","mapped":"next-call","shaped":false,
    "limited":false,"origin":"policy","auto":null,"limits":[],"devices":[]})"));
  EXPECT_EQ(all["classes"][1]["limits"], json::parse(R"([{"device":"/var","key":"both","value":10485760}])"));
  EXPECT_EQ(all["classes"][1]["origin"], "made");
  EXPECT_EQ(all["classes"][1]["devices"][0], json::parse(R"({"device":"vda","kind":"disk","read_bytes":1000,
    "written_bytes":0,"cached_bytes":0,"mapped_bytes":0,"written_off_bytes":0,"debts":[],
    "calls":3,"delayed_calls":1,"delayed_s":0.5,"limit":null,"tokens":-7})"));
  EXPECT_EQ(client.command("SetClass", "sa(sss)", "backup", 2, "disk", "both", "1MiB", "", "mode", "device"), "");
  bus.call([&] {
    const auto& changes = bus.backend().class_changes;
    ASSERT_EQ(changes.size(), 2U);
    EXPECT_EQ(changes[0].device + " " + changes[0].key + " " + changes[0].value, "disk both 1MiB");
    EXPECT_EQ(changes[1].device + " " + changes[1].key + " " + changes[1].value, " mode device");
  });
  EXPECT_EQ(client.command("CreateClass", "sa(sss)", "new", 0), "");
  EXPECT_EQ(client.command("SetClass", "sa(sss)", "none", 0), "org.swapd1.Error.NotFound: no class 'none'");
  EXPECT_EQ(client.command("RemoveClass", "s", "backup"), "");
}

TEST(Server, LaunchHandsOverDescriptorsAndTheProgramComesBackWhole) {
  BusThread bus;
  const std::vector<sock_filter> program = {{6, 1, 2, 3}, {7, 4, 5, 0x7fff0000}};
  bus.call([&] { bus.backend().on_launch = [&](LaunchRequest&) { return LaunchAnswer{true, program}; }; });
  BusClient client(bus);
  const Fd first(::memfd_create("first", MFD_CLOEXEC));
  const Fd second(::memfd_create("second", MFD_CLOEXEC));
  ASSERT_EQ(::write(second.get(), "shared", 6), 6);
  BusClient::Answer answer = client.call("Launch", "hhss", first.get(), second.get(), "interactive", "auto");
  ASSERT_EQ(answer.error, "");
  int install = 0;
  const void* bytes = nullptr;
  std::size_t size = 0;
  ASSERT_GE(sd_bus_message_read(answer.message.get(), "b", &install), 0);
  ASSERT_GE(sd_bus_message_read_array(answer.message.get(), 'y', &bytes, &size), 0);
  EXPECT_EQ(install, 1);
  ASSERT_EQ(size, program.size() * sizeof(sock_filter));
  EXPECT_EQ(std::memcmp(bytes, program.data(), size), 0);
  bus.call([&] {
    ASSERT_EQ(bus.backend().launched.size(), 1U);
    const LaunchRequest& request = bus.backend().launched[0];
    EXPECT_EQ(request.pid, ::getpid());
    EXPECT_EQ(request.caller.uid(), ::geteuid());
    EXPECT_EQ(request.class_name, "interactive");
    EXPECT_EQ(request.observe, "auto");
    EXPECT_NE(::fcntl(request.pidfd.get(), F_GETFD) & FD_CLOEXEC, 0);
    char text[6] = {};
    EXPECT_EQ(::pread(request.memory.get(), text, 6, 0), 6);
    EXPECT_EQ(std::string(text, 6), "shared");
  });
}

TEST(Server, ARefusedLaunchSaysWhy) {
  BusThread bus;
  BusClient client(bus);
  const Fd memory(::memfd_create("memory", MFD_CLOEXEC));
  EXPECT_EQ(client.command("Launch", "hhss", memory.get(), memory.get(), "nosuch", "auto"),
            "org.swapd1.Error.InvalidArgument: there is no class nosuch");
}

TEST(Server, EventsGoToFollowersOnly) {
  BusThread bus;
  BusClient follower(bus);
  BusClient other(bus);
  EXPECT_EQ(follower.command("FollowEvents", "b", 1), "");
  bus.call([&] {
    EXPECT_EQ(bus.backend().follow_calls, 1);
    bus.backend().sink(FakeBackend::donation_begun());
  });
  EXPECT_EQ(json::parse(follower.next_event())["type"], "donation-begun");
  EXPECT_NE(other.text("Status"), "");
  EXPECT_EQ(other.queued_events(), 0);

  EXPECT_EQ(follower.command("FollowEvents", "b", 0), "");
  bus.call([&] {
    EXPECT_EQ(bus.backend().follow_calls, 2);
    EXPECT_FALSE(bus.backend().sink);
  });
}

TEST(Server, AFollowerThatLeavesIsForgotten) {
  BusThread bus;
  {
    BusClient follower(bus);
    EXPECT_EQ(follower.command("FollowEvents", "b", 1), "");
  }
  EXPECT_TRUE(bus.eventually([&] { return !bus.backend().sink && bus.server().stats().connections == 0; }));
}

TEST(Server, ASlowFollowerLosesEventsAndIsToldHowMany) {
  ServerLimits limits;
  limits.queued_messages = 50;
  BusThread bus(limits);
  BusClient slow(bus);
  BusClient quick(bus);
  ASSERT_EQ(slow.command("FollowEvents", "b", 1), "");
  // Far more than the socket's buffer and fifty messages hold.
  EventView event = FakeBackend::donation_begun();
  event.fields["resource"] = std::string(65536, 'x');
  bus.call([&] {
    for (int i = 0; i < 500; ++i) bus.backend().sink(event);
  });
  const ServerStats stats = bus.stats();
  EXPECT_GT(stats.dropped_events_total, 100U);
  EXPECT_EQ(json::parse(quick.text("Status"))["pid"], 4242);  // nobody waits for the slow one

  std::uint64_t seen = 0;
  for (; seen < 500 - stats.dropped_events_total; ++seen)
    ASSERT_EQ(json::parse(slow.next_event())["type"], "donation-begun");
  bus.call([&] { bus.backend().sink(event); });
  const json lost = json::parse(slow.next_event());
  EXPECT_EQ(lost["type"], "events-lost");
  EXPECT_EQ(lost["count"], stats.dropped_events_total);
  EXPECT_EQ(json::parse(slow.next_event())["type"], "donation-begun");
}

// systemd/org.swapd1.xml is what tools generate their code from: it says what the running server says.
TEST(Server, TheIntrospectionFileIsTrue) {
  BusThread bus;
  BusClient client(bus);
  std::ifstream file(SWAPD_INTROSPECTION_XML);
  std::stringstream text;
  text << file.rdbuf();
  std::string documented = text.str();
  for (std::size_t at = 0; (at = documented.find("  <!--")) != std::string::npos;)
    documented.erase(at, documented.find("-->\n", at) + 4 - at);
  const std::string lock = encoded_path(resource_prefix, swapd::text(FakeBackend::lock()));
  for (const auto& [path, name] : {std::pair<std::string, std::string>{object_path, interface_name},
                                   {process_path(FakeBackend::job_pid), process_interface},
                                   {encoded_path(class_prefix, "default"), class_interface},
                                   {lock, resource_interface}}) {
    const std::string answer = client.introspect(path);
    const std::size_t begin = answer.find(" <interface name=\"" + name + "\">");
    ASSERT_NE(begin, std::string::npos) << path << answer;
    const std::string interface = answer.substr(begin, answer.find("</interface>", begin) + 13 - begin);
    EXPECT_NE(documented.find(interface), std::string::npos) << "the server says:\n" << interface;
  }
}

TEST(Server, ARecordingGoesToWhoAskedAndEndsWithThem) {
  BusThread bus;
  BusClient other(bus);
  {
    BusClient client(bus);
    EXPECT_EQ(other.command("Record", "b", 0), "org.swapd1.Error.Failed: this client does not record");
    EXPECT_EQ(client.command("Record", "b", 1), "");
    EXPECT_EQ(other.command("Record", "b", 1), "org.swapd1.Error.Failed: a recording is under way");
    EXPECT_EQ(other.command("Record", "b", 0), "org.swapd1.Error.Failed: this client does not record");
    bus.call([&] { EXPECT_TRUE(bus.backend().recorder("{\"type\":\"header\"}\n{}\n")); });
    EXPECT_EQ(client.next_signal("Recorded"), "{\"type\":\"header\"}\n{}\n");
    EXPECT_EQ(client.command("Record", "b", 0), "");
    EXPECT_THAT(client.next_signal("Recorded"), StartsWith("{\"type\":\"end\""))
        << "the last lines come before the answer";
    bus.call([&] { EXPECT_FALSE(bus.backend().recorder); });
    EXPECT_EQ(client.command("Record", "b", 1), "");
  }
  EXPECT_TRUE(bus.eventually([&] { return !bus.backend().recorder; })) << "it ends with the connection";
  EXPECT_EQ(other.command("Record", "b", 1), "");
}

TEST(Server, WhoRecordsAndDoesNotReadIsToldThatThereIsNoRoom) {
  BusThread bus({.queued_messages = 64});
  BusClient client(bus);
  EXPECT_EQ(client.command("Record", "b", 1), "");
  const std::string piece(64 << 10, '-');
  int sent = 0;
  bus.call([&] {
    while (sent < 1000 && bus.backend().recorder(piece)) ++sent;
    EXPECT_FALSE(bus.backend().recorder("")) << "nor any later";
  });
  EXPECT_LT(sent, 1000) << "its queue and the buffers of the socket are full";
  while (client.next_signal("Recorded").size() == piece.size() && --sent > 0) {
  }
  EXPECT_EQ(sent, 0);
  EXPECT_TRUE(bus.eventually([&] { return bus.backend().recorder(""); })) << "it has read";
}

}  // namespace
}  // namespace swapd::bus
