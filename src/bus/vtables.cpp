#include "bus/vtables.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "bus/manager.h"
#include "bus/methods.h"
#include "bus/objects.h"

namespace swapd::bus {

int Methods::version(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void* data, sd_bus_error*) {
  return sd_bus_message_append(reply, "s", self(data).backend_.version().c_str());
}

int Methods::pid(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void*, sd_bus_error*) {
  return sd_bus_message_append(reply, "u", static_cast<std::uint32_t>(::getpid()));
}

int Methods::manager_property(sd_bus*, const char*, const char*, const char* name, sd_bus_message* reply, void* data,
                              sd_bus_error*) {
  return append(reply, self(data).itself().properties.at(name));
}

int Methods::property(sd_bus*, const char* path, const char*, const char* name, sd_bus_message* reply, void* data,
                      sd_bus_error*) {
  const Tree& tree = self(data).tree();
  const auto object = tree.find(path);
  return object == tree.end() ? -ENOENT : append(reply, object->second.properties.at(name));
}

int Methods::find(sd_bus*, const char* path, const char* interface, void* data, void** found, sd_bus_error*) {
  *found = data;
  // A caller that may not see it is refused, and not told whether there is such a process.
  if (std::string_view(interface) == process_interface) return process_of(path) > 0 ? 1 : 0;
  const Tree& tree = self(data).tree();
  const auto object = tree.find(path);
  return object != tree.end() && object->second.interface == interface ? 1 : 0;
}

int Methods::enumerate(sd_bus*, const char* prefix, void* data, char*** nodes, sd_bus_error*) {
  const std::string below = std::string(prefix) + "/";
  std::vector<std::string_view> paths;
  for (const auto& [path, object] : self(data).tree())
    if (path.starts_with(below)) paths.push_back(path);
  // sd-bus frees them.
  auto** list = static_cast<char**>(std::calloc(paths.size() + 1, sizeof(char*)));
  if (list == nullptr) return -ENOMEM;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    list[i] = ::strndup(paths[i].data(), paths[i].size());
    if (list[i] != nullptr) continue;
    for (std::size_t j = 0; j < i; ++j) std::free(list[j]);
    std::free(list);
    return -ENOMEM;
  }
  *nodes = list;
  return 1;
}

namespace {

// Any peer that got as far as a connection may call: the private socket lets in root and its owner only.
constexpr auto open_to_peers = SD_BUS_VTABLE_UNPRIVILEGED;

const sd_bus_vtable manager_vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD_WITH_ARGS("Status", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), Methods::status, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Processes", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), Methods::processes, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Why", SD_BUS_ARGS("u", pid), SD_BUS_RESULT("s", json), Methods::why, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Graph", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), Methods::graph, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Policy", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), Methods::policy, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Classes", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), Methods::classes, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("CreateClass", SD_BUS_ARGS("s", class, "a(sss)", limits), SD_BUS_NO_RESULT,
                            Methods::create_class, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("SetClass", SD_BUS_ARGS("s", class, "a(sss)", limits), SD_BUS_NO_RESULT, Methods::set_class,
                            open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("RemoveClass", SD_BUS_ARGS("s", class), SD_BUS_NO_RESULT, Methods::remove_class,
                            open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Dump", SD_BUS_ARGS("s", what), SD_BUS_RESULT("h", memory), Methods::dump, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Launch", SD_BUS_ARGS("h", pidfd, "h", memory, "s", class, "s", observe),
                            SD_BUS_RESULT("b", install, "ay", program), Methods::launch, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Enroll", SD_BUS_ARGS("u", pid, "b", tree, "s", class, "b", allow_no_new_privs),
                            SD_BUS_NO_RESULT, Methods::enroll, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("EnrollPidfd", SD_BUS_ARGS("h", pidfd, "b", tree, "s", class, "b", allow_no_new_privs),
                            SD_BUS_NO_RESULT, Methods::enroll_pidfd, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Release", SD_BUS_ARGS("u", pid), SD_BUS_NO_RESULT, Methods::release, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Thaw", SD_BUS_ARGS("u", pid), SD_BUS_NO_RESULT, Methods::thaw, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Restart", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, Methods::restart, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, Methods::restart, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Pause", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, Methods::pause, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Resume", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, Methods::resume, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Set", SD_BUS_ARGS("u", pid, "s", policy, "i", nice, "i", priority), SD_BUS_NO_RESULT,
                            Methods::set, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("FollowEvents", SD_BUS_ARGS("b", on), SD_BUS_NO_RESULT, Methods::follow_events,
                            open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Record", SD_BUS_ARGS("b", on), SD_BUS_NO_RESULT, Methods::record, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Subscribe", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, Methods::subscribe, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Unsubscribe", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, Methods::unsubscribe, open_to_peers),
    SD_BUS_SIGNAL_WITH_ARGS("Enrolled", SD_BUS_ARGS("u", pid), 0),
    SD_BUS_SIGNAL_WITH_ARGS("Released", SD_BUS_ARGS("u", pid), 0),
    SD_BUS_SIGNAL_WITH_ARGS(
        "InversionFound",
        SD_BUS_ARGS("u", requester_pid, "u", requester_tid, "u", provider_pid, "u", provider_tid, "s", resource), 0),
    SD_BUS_SIGNAL_WITH_ARGS("DonationBegun",
                            SD_BUS_ARGS("u", requester_pid, "u", requester_tid, "u", provider_pid, "u", provider_tid,
                                        "s", resource, "s", policy, "i", nice, "u", priority),
                            0),
    SD_BUS_SIGNAL_WITH_ARGS(
        "DonationEnded",
        SD_BUS_ARGS("u", requester_pid, "u", requester_tid, "u", provider_pid, "u", provider_tid, "s", resource), 0),
    SD_BUS_SIGNAL_WITH_ARGS("DonationIneffective",
                            SD_BUS_ARGS("u", requester_pid, "u", requester_tid, "u", provider_pid, "u", provider_tid,
                                        "s", resource, "s", reason),
                            0),
    SD_BUS_SIGNAL_WITH_ARGS("LimitReached", SD_BUS_ARGS("s", limit, "u", pid, "u", tid), 0),
    SD_BUS_SIGNAL_WITH_ARGS("SignalsLost", SD_BUS_ARGS("t", count), 0),
    SD_BUS_SIGNAL_WITH_ARGS("Event", SD_BUS_ARGS("s", json_line), 0),
    SD_BUS_SIGNAL_WITH_ARGS("Recorded", SD_BUS_ARGS("s", json_lines), 0),
    SD_BUS_PROPERTY("Version", "s", Methods::version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Pid", "u", Methods::pid, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Observer", "s", Methods::manager_property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Paused", "b", Methods::manager_property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("ManagedProcesses", "u", Methods::manager_property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("ManagedThreads", "u", Methods::manager_property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("DonationsActive", "u", Methods::manager_property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("MemoryShort", "b", Methods::manager_property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_VTABLE_END,
};

const sd_bus_vtable process_vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD_WITH_ARGS("Why", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), Methods::why, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Release", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, Methods::release, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Thaw", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, Methods::thaw, open_to_peers),
    SD_BUS_METHOD_WITH_ARGS("Set", SD_BUS_ARGS("s", policy, "i", nice, "i", priority), SD_BUS_NO_RESULT, Methods::set,
                            open_to_peers),
    SD_BUS_PROPERTY("Pid", "u", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Comm", "s", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Class", "s", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Threads", "u", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Lends", "b", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Borrows", "b", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Away", "b", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_VTABLE_END,
};

const sd_bus_vtable class_vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_PROPERTY("Name", "s", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Description", "s", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Open", "b", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Settings", "a{ss}", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Limits", "a{ss}", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Processes", "ao", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_VTABLE_END,
};

const sd_bus_vtable resource_vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_PROPERTY("Name", "s", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Kind", "s", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Requesters", "a(uu)", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Providers", "a(uud)", Methods::property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_VTABLE_END,
};

}  // namespace

int add_objects(sd_bus* bus, Manager& manager, std::vector<sd_bus_slot*>& slots) {
  struct Kind {
    const char* prefix;
    const char* interface;
    const sd_bus_vtable* vtable;
  };
  const auto slot = [&] { return &slots.emplace_back(nullptr); };
  int r = sd_bus_add_object_vtable(bus, slot(), object_path, interface_name, manager_vtable, &manager);
  if (r >= 0) r = sd_bus_add_object_manager(bus, slot(), object_path);
  for (const Kind& kind :
       {Kind{process_prefix, process_interface, process_vtable}, Kind{class_prefix, class_interface, class_vtable},
        Kind{resource_prefix, resource_interface, resource_vtable}}) {
    if (r >= 0)
      r = sd_bus_add_fallback_vtable(bus, slot(), kind.prefix, kind.interface, kind.vtable, Methods::find, &manager);
    if (r >= 0) r = sd_bus_add_node_enumerator(bus, slot(), kind.prefix, Methods::enumerate, &manager);
  }
  return r;
}

}  // namespace swapd::bus
