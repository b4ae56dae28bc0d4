// Processes, classes and resources as objects, and who subscribed to them: as a client of the private socket sees it.
#include "bus/objects.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <nlohmann/json.hpp>

#include "bus/subscribers.h"
#include "bus_client.h"
#include "fakes/bus_fixture.h"

namespace swapd::bus {
namespace {

using fakes::BusThread;
using fakes::FakeBackend;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const std::string client_path = process_path(FakeBackend::client_pid);
const std::string server_path = process_path(FakeBackend::server_pid);
const std::string job_path = process_path(FakeBackend::job_pid);

TEST(ObjectPath, OfAProcessIsItsNumberAndNothingElse) {
  EXPECT_EQ(process_path(42), "/org/swapd1/process/42");
  EXPECT_EQ(process_of("/org/swapd1/process/42"), 42);
  for (const char* other : {"/org/swapd1/process/042", "/org/swapd1/process/-1", "/org/swapd1/process/",
                            "/org/swapd1/process/42/x", "/org/swapd1/process/99999999999", "/org/swapd1/class/42"})
    EXPECT_EQ(process_of(other), 0) << other;
}

TEST(ObjectPath, OfANameIsEscaped) {
  EXPECT_EQ(encoded_path(class_prefix, "build-host"), "/org/swapd1/class/build_2dhost");
  EXPECT_EQ(encoded_path(resource_prefix, "socket:7"), "/org/swapd1/resource/socket_3a7");
}

// As on a message bus: one connection, a name for each client.
TEST(Subscribers, OfOneUserLeaveTheOthersTheirPlaces) {
  FakeBackend backend;
  sd_event* loop = nullptr;
  sd_bus* bus = nullptr;
  ASSERT_GE(sd_event_new(&loop), 0);
  ASSERT_GE(sd_bus_new(&bus), 0);
  ASSERT_GE(sd_bus_attach_event(bus, loop, 0), 0);
  {
    Subscribers subscribers(backend, 16);
    const auto fill = [&](std::uint32_t uid) {
      std::size_t added = 0;
      for (; added < 1000; ++added) {
        const Recipient client{bus, ":" + std::to_string(uid) + "." + std::to_string(added)};
        if (!subscribers.has_room(client, uid)) break;
        subscribers.add(client, uid);
      }
      return added;
    };
    EXPECT_EQ(fill(1000), 16U);
    EXPECT_EQ(fill(1001), 16U);
    EXPECT_TRUE(subscribers.has_room({bus, ":1000.3"}, 1000)) << "it is here already";
    for (std::uint32_t uid = 1002; uid < 1020; ++uid) (void)fill(uid);
    EXPECT_FALSE(subscribers.has_room({bus, ":2000.1"}, 2000)) << "so many users together";
    EXPECT_EQ(fill(0), 64U) << "root's places are its own";
    subscribers.remove({bus, ":1000.3"});
    EXPECT_TRUE(subscribers.has_room({bus, ":2000.1"}, 2000));
  }
  sd_bus_detach_event(bus);
  sd_bus_unref(bus);
  sd_event_unref(loop);
}

TEST(Objects, AreTheProcessesClassesAndAwaitedResources) {
  FakeBackend backend;
  const Tree tree = objects_now(backend);
  std::vector<std::string> paths;
  for (const auto& [path, object] : tree) paths.push_back(path);
  EXPECT_THAT(paths, UnorderedElementsAre(client_path, server_path, job_path, encoded_path(class_prefix, "default"),
                                          encoded_path(class_prefix, "interactive"),
                                          encoded_path(class_prefix, "batch"), encoded_path(class_prefix, "backup"),
                                          encoded_path(resource_prefix, text(FakeBackend::socket())),
                                          encoded_path(resource_prefix, text(FakeBackend::lock()))));
  const Object& client = tree.at(client_path);
  EXPECT_EQ(client.properties.at("Comm"), Value(std::string("client")));
  EXPECT_EQ(client.properties.at("Lends"), Value(true));
  EXPECT_EQ(client.properties.at("Borrows"), Value(false));
  EXPECT_EQ(tree.at(job_path).properties.at("Borrows"), Value(true));
  EXPECT_EQ(tree.at(encoded_path(class_prefix, "batch")).properties.at("Processes"), Value(ObjectPaths{job_path}));
  EXPECT_EQ(tree.at(encoded_path(class_prefix, "backup")).properties.at("Limits"),
            Value(Settings{{"/var.both", "10485760"}}));
  const Object& lock = tree.at(encoded_path(resource_prefix, text(FakeBackend::lock())));
  EXPECT_EQ(lock.properties.at("Kind"), Value(std::string("flock")));
  EXPECT_EQ(lock.properties.at("Requesters"), Value(ThreadIds{{FakeBackend::server_pid, FakeBackend::server_tid}}));
  EXPECT_EQ(lock.properties.at("Providers"),
            Value(std::vector<Provides>{{FakeBackend::job_pid, FakeBackend::job_pid, 20}}));
}

TEST(Objects, SayWhereMemoryIsShortAndWhatIsAwayForThat) {
  FakeBackend backend;
  const Tree before = objects_now(backend);
  EXPECT_EQ(before.at(job_path).properties.at("Away"), Value(false));
  EXPECT_EQ(manager_now(backend).properties.at("MemoryShort"), Value(false));
  backend.away = {FakeBackend::job_pid};
  EXPECT_THAT(changes(before, objects_now(backend)).changed, ElementsAre(testing::Pair(job_path, ElementsAre("Away"))));
  EXPECT_EQ(manager_now(backend).properties.at("MemoryShort"), Value(true));
}

TEST(Objects, WhatHasChangedIsNamed) {
  FakeBackend backend;
  const Tree before = objects_now(backend);
  EXPECT_THAT(changes(before, before).changed, IsEmpty());
  Tree now = before;
  now.erase(job_path);
  now[process_path(7)] = before.at(job_path);
  now[client_path].properties["Comm"] = std::string("renamed");
  const Changes found = changes(before, now);
  EXPECT_THAT(found.removed, ElementsAre(job_path));
  EXPECT_THAT(found.added, ElementsAre(process_path(7)));
  EXPECT_THAT(found.changed, ElementsAre(testing::Pair(client_path, ElementsAre("Comm"))));
}

std::vector<std::string> managed_objects(BusClient& client) {
  const auto answer = client.call_at(object_path, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", "");
  EXPECT_EQ(answer.error, "");
  std::vector<std::string> paths;
  if (!answer.message || sd_bus_message_enter_container(answer.message.get(), 'a', "{oa{sa{sv}}}") < 0) return paths;
  while (sd_bus_message_enter_container(answer.message.get(), 'e', "oa{sa{sv}}") > 0) {
    const char* path = nullptr;
    EXPECT_GE(sd_bus_message_read(answer.message.get(), "o", &path), 0);
    if (path != nullptr) paths.emplace_back(path);
    EXPECT_GE(sd_bus_message_skip(answer.message.get(), "a{sa{sv}}"), 0);
    EXPECT_GE(sd_bus_message_exit_container(answer.message.get()), 0);
  }
  return paths;
}

TEST(Objects, AreListedByTheObjectManagerAndHaveTheirProperties) {
  BusThread bus;
  BusClient client(bus);
  EXPECT_THAT(managed_objects(client), testing::IsSupersetOf({client_path, encoded_path(class_prefix, "default")}));
  EXPECT_THAT(client.introspect(process_prefix), HasSubstr("<node name=\"100\"/>"));
  const auto answer =
      client.call_at(server_path, "org.freedesktop.DBus.Properties", "Get", "ss", process_interface, "Comm");
  const char* comm = nullptr;
  ASSERT_TRUE(answer.message) << answer.error;
  EXPECT_GE(sd_bus_message_read(answer.message.get(), "v", "s", &comm), 0);
  EXPECT_STREQ(comm, "server");
  EXPECT_NE(client.call_at(process_path(4), "org.freedesktop.DBus.Properties", "GetAll", "s", process_interface).error,
            "");
}

TEST(Objects, AProcessUnderstandsWhatTheManagerDoes) {
  BusThread bus;
  BusClient client(bus);
  const auto why = client.call_at(server_path, process_interface, "Why", "");
  const char* text = nullptr;
  ASSERT_TRUE(why.message) << why.error;
  ASSERT_GE(sd_bus_message_read(why.message.get(), "s", &text), 0);
  const json shown = json::parse(text);
  EXPECT_EQ(shown["threads"][0]["comm"], "server");
  EXPECT_EQ(client.call_at(job_path, process_interface, "Set", "sii", "other", 5, 0).error, "");
  EXPECT_EQ(client.call_at(job_path, process_interface, "Release", "").error, "");
  EXPECT_EQ(client.call_at(job_path, process_interface, "Thaw", "").error, "");
  EXPECT_THAT(client.call_at(process_path(FakeBackend::unknown_pid), process_interface, "Release", "").error,
              HasSubstr("no managed process has the id 999"));
  bus.call([&] {
    ASSERT_EQ(bus.backend().sets.size(), 1U);
    EXPECT_EQ(bus.backend().sets[0].pid, FakeBackend::job_pid);
    EXPECT_EQ(bus.backend().sets[0].base.nice, 5);
    EXPECT_THAT(bus.backend().released, ElementsAre(testing::Pair(FakeBackend::job_pid, ::geteuid())));
  });
}

TEST(Objects, ALargeAnswerComesInMemoryThatNobodyChanges) {
  BusThread bus;
  BusClient client(bus);
  const std::string whole = client.text("Processes");
  const auto answer = client.call("Dump", "s", "processes");
  int fd = -1;
  ASSERT_TRUE(answer.message) << answer.error;
  ASSERT_GE(sd_bus_message_read(answer.message.get(), "h", &fd), 0);
  std::string read(whole.size() + 1, '\0');
  EXPECT_EQ(::read(fd, read.data(), read.size()), static_cast<ssize_t>(whole.size()));
  read.resize(whole.size());
  EXPECT_EQ(read, whole);
  EXPECT_EQ(::fcntl(fd, F_GET_SEALS), F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
  EXPECT_THAT(client.command("Dump", "s", "everything"),
              HasSubstr("'everything' is not one of status, processes, graph, policy"));
}

TEST(Objects, AProcessIsEnrolledByItsDescriptor) {
  BusThread bus;
  BusClient client(bus);
  EXPECT_EQ(client.command("EnrollPidfd", "hbsb", STDIN_FILENO, 0, "batch", 0), "");
  bus.call([&] {
    ASSERT_EQ(bus.backend().enrolled.size(), 1U);
    EXPECT_EQ(bus.backend().enrolled[0].pid, bus.backend().described);
    EXPECT_EQ(bus.backend().enrolled[0].class_name, "batch");
  });
}

// Of the first object of GetManagedObjects, and what goes with one: clients that count them take an object for gone
// when all have.
TEST(Objects, HaveTheSameInterfacesWhenTheyAreListedAndWhenTheyGo) {
  BusThread bus;
  BusClient client(bus);
  const auto answer = client.call_at(object_path, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", "");
  sd_bus_message* listed = answer.message.get();
  ASSERT_GT(sd_bus_message_enter_container(listed, 'a', "{oa{sa{sv}}}"), 0);
  ASSERT_GT(sd_bus_message_enter_container(listed, 'e', "oa{sa{sv}}"), 0);
  ASSERT_GT(sd_bus_message_skip(listed, "o"), 0);
  ASSERT_GT(sd_bus_message_enter_container(listed, 'a', "{sa{sv}}"), 0);
  std::size_t interfaces = 0;
  while (sd_bus_message_enter_container(listed, 'e', "sa{sv}") > 0) {
    ++interfaces;
    ASSERT_GT(sd_bus_message_skip(listed, "sa{sv}"), 0);
    ASSERT_GE(sd_bus_message_exit_container(listed), 0);
  }
  EXPECT_EQ(client.command("Subscribe", ""), "");
  bus.call([&] { bus.backend().world_threads.emplace(); });
  const BusClient::Message gone = client.next("InterfacesRemoved");
  ASSERT_TRUE(gone);
  ASSERT_GT(sd_bus_message_skip(gone.get(), "o"), 0);
  ASSERT_GT(sd_bus_message_enter_container(gone.get(), 'a', "s"), 0);
  std::size_t removed = 0;
  for (const char* name = nullptr; sd_bus_message_read(gone.get(), "s", &name) > 0;) ++removed;
  EXPECT_EQ(removed, interfaces);
}

std::string path_in(const BusClient::Message& signal) {
  const char* path = nullptr;
  return signal && sd_bus_message_read(signal.get(), "o", &path) > 0 ? path : "";
}

TEST(Subscribers, AreToldOfObjectsThatGoAndCome) {
  BusThread bus;
  BusClient client(bus);
  bus.call([&] {
    EXPECT_EQ(bus.backend().world_calls, 0) << "without subscribers nothing is looked at";
    EXPECT_EQ(bus.backend().follow_calls, 0);
  });
  EXPECT_EQ(client.command("Subscribe", ""), "");
  bus.call([&] {
    EXPECT_EQ(bus.backend().detail, EventDetail::decisions) << "what each thread does is not collected for that";
    std::vector<ThreadView> fewer = bus.backend().threads();
    std::erase_if(fewer, [](const ThreadView& t) { return t.pid == FakeBackend::job_pid; });
    bus.backend().world_threads = fewer;
  });
  // Its class is in no policy, and goes with it.
  const std::string batch = encoded_path(class_prefix, "batch");
  EXPECT_EQ(path_in(client.next("InterfacesRemoved")), batch);
  EXPECT_EQ(path_in(client.next("InterfacesRemoved")), job_path);
  bus.call([&] { bus.backend().world_threads.reset(); });
  EXPECT_EQ(path_in(client.next("InterfacesAdded")), batch);
  EXPECT_EQ(path_in(client.next("InterfacesAdded")), job_path);
  EXPECT_EQ(client.command("Unsubscribe", ""), "");
  bus.call([&] { EXPECT_EQ(bus.backend().detail, EventDetail::none); });
}

TEST(Subscribers, AreToldOfTheOnePropertyThatChanged) {
  BusThread bus;
  BusClient client(bus);
  EXPECT_EQ(client.command("Subscribe", ""), "");
  bus.call([&] { bus.backend().comm = "renamed"; });
  const BusClient::Message changed = client.next("PropertiesChanged");
  ASSERT_TRUE(changed);
  EXPECT_EQ(sd_bus_message_get_path(changed.get()), client_path);
  const char* interface = nullptr;
  const char* name = nullptr;
  const char* value = nullptr;
  ASSERT_GE(sd_bus_message_read(changed.get(), "s", &interface), 0);
  EXPECT_STREQ(interface, process_interface);
  ASSERT_GT(sd_bus_message_enter_container(changed.get(), 'a', "{sv}"), 0);
  ASSERT_GT(sd_bus_message_read(changed.get(), "{sv}", &name, "s", &value), 0);
  EXPECT_STREQ(name, "Comm");
  EXPECT_STREQ(value, "renamed");
  EXPECT_GT(sd_bus_message_at_end(changed.get(), 0), 0);
  EXPECT_EQ(client.command("Pause", ""), "");
  const BusClient::Message paused = client.next("PropertiesChanged");
  ASSERT_TRUE(paused);
  EXPECT_STREQ(sd_bus_message_get_path(paused.get()), object_path);
}

EventView event(const char* type, std::map<std::string, std::string> fields) {
  EventView made;
  made.type = type;
  made.pid = FakeBackend::server_pid;
  made.tid = FakeBackend::server_tid;
  made.fields = std::move(fields);
  made.numbers = {{"requester", 101}, {"requester_pid", 100}, {"nice", -5}, {"rt_priority", 0}};
  return made;
}

TEST(Subscribers, AreToldWhatIsFoundAndLent) {
  BusThread bus;
  BusClient client(bus);
  EXPECT_EQ(client.command("Subscribe", ""), "");
  const auto happens = [&](const EventView& e) { bus.call([&] { bus.backend().sink(e); }); };
  happens(event("inversion-found", {{"resource", "socket:7"}}));
  happens(event("donation-begun", {{"resource", "socket:7"}, {"policy", "other"}}));
  happens(event("ineffective", {{"resource", "socket:7"}, {"reason", "affinity"}}));
  happens(event("limit-reached", {{"limit", "ceiling"}}));
  happens(event("blocked", {}));
  EventView process;
  process.type = "released";
  process.pid = process.tid = FakeBackend::job_pid;
  happens(process);  // a resource
  process.process = true;
  happens(process);

  std::uint32_t ids[4] = {};
  const char* resource = nullptr;
  const char* word = nullptr;
  BusClient::Message told = client.next("InversionFound");
  ASSERT_TRUE(told);
  ASSERT_GT(sd_bus_message_read(told.get(), "uuuus", &ids[0], &ids[1], &ids[2], &ids[3], &resource), 0);
  EXPECT_THAT(ids, ElementsAre(100U, 101U, FakeBackend::server_pid, FakeBackend::server_tid));
  EXPECT_STREQ(resource, "socket:7");
  told = client.next("DonationBegun");
  ASSERT_TRUE(told);
  std::int32_t nice = 0;
  std::uint32_t priority = 7;
  ASSERT_GT(sd_bus_message_read(told.get(), "uuuussiu", &ids[0], &ids[1], &ids[2], &ids[3], &resource, &word, &nice,
                                &priority),
            0);
  EXPECT_STREQ(word, "other");
  EXPECT_EQ(nice, -5);
  EXPECT_EQ(priority, 0U);
  told = client.next("DonationIneffective");
  ASSERT_TRUE(told);
  ASSERT_GT(sd_bus_message_read(told.get(), "uuuuss", &ids[0], &ids[1], &ids[2], &ids[3], &resource, &word), 0);
  EXPECT_STREQ(word, "affinity");
  told = client.next("LimitReached");
  ASSERT_TRUE(told);
  ASSERT_GT(sd_bus_message_read(told.get(), "suu", &word, &ids[0], &ids[1]), 0);
  EXPECT_STREQ(word, "ceiling");
  told = client.next("Released");
  ASSERT_TRUE(told);
  ASSERT_GT(sd_bus_message_read(told.get(), "u", &ids[0]), 0);
  EXPECT_EQ(ids[0], static_cast<std::uint32_t>(FakeBackend::job_pid));
}

TEST(Subscribers, AnswersToOthersAreNotTheirs) {
  BusThread bus;
  BusClient follower(bus);
  BusClient subscriber(bus);
  EXPECT_EQ(follower.command("FollowEvents", "b", 1), "");
  EXPECT_EQ(subscriber.command("Subscribe", ""), "");
  bus.call([&] {
    EXPECT_EQ(bus.backend().detail, EventDetail::all);
    bus.backend().sink(FakeBackend::donation_begun());
  });
  EXPECT_THAT(follower.next_event(), HasSubstr("donation-begun"));
  EXPECT_TRUE(subscriber.next("DonationBegun"));
  EXPECT_EQ(follower.command("FollowEvents", "b", 0), "");
  bus.call([&] { EXPECT_EQ(bus.backend().detail, EventDetail::decisions); });
}

TEST(Subscribers, WhoDoesNotReadMissesSignalsButNoChange) {
  BusThread bus({.queued_messages = 32});
  BusClient slow(bus);
  EXPECT_EQ(slow.command("Subscribe", ""), "");
  std::uint64_t lost = 0;
  const auto flooded = [&] {
    for (int i = 0; i < 1000; ++i) bus.backend().sink(FakeBackend::donation_begun());
    lost = bus.server().stats().dropped_events_total;
    return lost > 0;
  };
  ASSERT_TRUE(bus.eventually(flooded));
  bus.call([&] { bus.backend().comm = "renamed"; });
  const BusClient::Message changed = slow.next("PropertiesChanged");
  ASSERT_TRUE(changed) << "when there is room again";
  EXPECT_EQ(sd_bus_message_get_path(changed.get()), client_path);
  bus.call([&] { bus.backend().sink(FakeBackend::donation_begun()); });
  const BusClient::Message missed = slow.next("SignalsLost");
  ASSERT_TRUE(missed);
  std::uint64_t count = 0;
  ASSERT_GT(sd_bus_message_read(missed.get(), "t", &count), 0);
  EXPECT_EQ(count, lost);
}

TEST(Subscribers, GoWithTheirConnection) {
  BusThread bus;
  {
    BusClient client(bus);
    EXPECT_EQ(client.command("Subscribe", ""), "");
  }
  EXPECT_TRUE(bus.eventually([&] { return bus.backend().detail == EventDetail::none; }));
  int calls = 0;
  bus.call([&] { calls = bus.backend().world_calls; });
  BusClient other(bus);
  EXPECT_EQ(other.command("Subscribe", ""), "");
  EXPECT_TRUE(bus.eventually([&] { return bus.backend().world_calls > calls + 1; })) << "and looking begins again";
}

}  // namespace
}  // namespace swapd::bus
