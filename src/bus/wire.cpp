#include "bus/wire.h"

#include <algorithm>
#include <cstdint>

#include "bus/json.h"

namespace swapd::bus {
namespace {

// Each kind of value as D-Bus has it, and how it is written.
struct Appender {
  sd_bus_message* to;

  [[nodiscard]] static const char* type(bool) { return "b"; }
  [[nodiscard]] static const char* type(std::uint32_t) { return "u"; }
  [[nodiscard]] static const char* type(const std::string&) { return "s"; }
  [[nodiscard]] static const char* type(const ObjectPaths&) { return "ao"; }
  [[nodiscard]] static const char* type(const Settings&) { return "a{ss}"; }
  [[nodiscard]] static const char* type(const ThreadIds&) { return "a(uu)"; }
  [[nodiscard]] static const char* type(const std::vector<Provides>&) { return "a(uud)"; }

  int operator()(bool value) const { return sd_bus_message_append(to, "b", value ? 1 : 0); }
  int operator()(std::uint32_t value) const { return sd_bus_message_append(to, "u", value); }
  // A program calls itself what it likes; D-Bus takes UTF-8 alone.
  int operator()(const std::string& value) const { return sd_bus_message_append(to, "s", valid_utf8(value).c_str()); }
  int operator()(const ObjectPaths& paths) const {
    return array("o", paths, [&](const std::string& one) { return sd_bus_message_append(to, "o", one.c_str()); });
  }
  int operator()(const Settings& settings) const {
    return array("{ss}", settings, [&](const auto& one) {
      return sd_bus_message_append(to, "{ss}", valid_utf8(one.first).c_str(), valid_utf8(one.second).c_str());
    });
  }
  int operator()(const ThreadIds& ids) const {
    return array("(uu)", ids,
                 [&](const auto& one) { return sd_bus_message_append(to, "(uu)", one.first, one.second); });
  }
  int operator()(const std::vector<Provides>& providers) const {
    return array("(uud)", providers, [&](const Provides& one) {
      return sd_bus_message_append(to, "(uud)", one.pid, one.tid, one.confidence);
    });
  }

 private:
  template <typename Range, typename One>
  int array(const char* contents, const Range& range, One one) const {
    int r = sd_bus_message_open_container(to, 'a', contents);
    for (const auto& element : range)
      if (r >= 0) r = one(element);
    return r < 0 ? r : sd_bus_message_close_container(to);
  }
};

// Those that sd-bus lists for each object besides ours: some clients take an object for gone only with its last one.
constexpr const char* standard_interfaces[] = {"org.freedesktop.DBus.Peer", "org.freedesktop.DBus.Introspectable",
                                               "org.freedesktop.DBus.Properties"};

int append_variant(sd_bus_message* message, const std::string& name, const Value& value) {
  const char* type = std::visit([](const auto& v) { return Appender::type(v); }, value);
  int r = sd_bus_message_open_container(message, 'e', "sv");
  if (r >= 0) r = sd_bus_message_append(message, "s", name.c_str());
  if (r >= 0) r = sd_bus_message_open_container(message, 'v', type);
  if (r >= 0) r = append(message, value);
  if (r >= 0) r = sd_bus_message_close_container(message);
  return r < 0 ? r : sd_bus_message_close_container(message);
}

template <typename Names>
int append_properties(sd_bus_message* message, const Object& object, const Names& has) {
  int r = sd_bus_message_open_container(message, 'a', "{sv}");
  for (const auto& [name, value] : object.properties)
    if (r >= 0 && has(name)) r = append_variant(message, name, value);
  return r < 0 ? r : sd_bus_message_close_container(message);
}

}  // namespace

int append(sd_bus_message* message, const Value& value) { return std::visit(Appender{message}, value); }

Message new_signal(const Recipient& to, const char* path, const char* interface, const char* member) {
  sd_bus_message* made = nullptr;
  int r = sd_bus_message_new_signal(to.bus, &made, path, interface, member);
  Message message(made);
  if (r >= 0 && !to.name.empty()) r = sd_bus_message_set_destination(made, to.name.c_str());
  return r < 0 ? nullptr : std::move(message);
}

Message properties_changed(const Recipient& to, const std::string& path, const Object& object,
                           std::span<const std::string> names) {
  Message message = new_signal(to, path.c_str(), "org.freedesktop.DBus.Properties", "PropertiesChanged");
  if (!message || sd_bus_message_append(message.get(), "s", object.interface.c_str()) < 0) return nullptr;
  const auto among = [&](const std::string& name) { return std::ranges::find(names, name) != names.end(); };
  if (append_properties(message.get(), object, among) < 0) return nullptr;
  return sd_bus_message_append(message.get(), "as", 0) < 0 ? nullptr : std::move(message);
}

Message interfaces_added(const Recipient& to, const std::string& path, const Object& object) {
  Message message = new_signal(to, object_path, "org.freedesktop.DBus.ObjectManager", "InterfacesAdded");
  if (!message) return nullptr;
  int r = sd_bus_message_append(message.get(), "o", path.c_str());
  if (r >= 0) r = sd_bus_message_open_container(message.get(), 'a', "{sa{sv}}");
  for (const char* standard : standard_interfaces)
    if (r >= 0) r = sd_bus_message_append(message.get(), "{sa{sv}}", standard, 0);
  if (r >= 0) r = sd_bus_message_open_container(message.get(), 'e', "sa{sv}");
  if (r >= 0) r = sd_bus_message_append(message.get(), "s", object.interface.c_str());
  if (r >= 0) r = append_properties(message.get(), object, [](const std::string&) { return true; });
  if (r >= 0) r = sd_bus_message_close_container(message.get());
  if (r >= 0) r = sd_bus_message_close_container(message.get());
  return r < 0 ? nullptr : std::move(message);
}

Message interfaces_removed(const Recipient& to, const std::string& path, const char* interface) {
  Message message = new_signal(to, object_path, "org.freedesktop.DBus.ObjectManager", "InterfacesRemoved");
  if (!message) return nullptr;
  int r = sd_bus_message_append(message.get(), "o", path.c_str());
  if (r >= 0) r = sd_bus_message_open_container(message.get(), 'a', "s");
  for (const char* standard : standard_interfaces)
    if (r >= 0) r = sd_bus_message_append(message.get(), "s", standard);
  if (r >= 0) r = sd_bus_message_append(message.get(), "s", interface);
  if (r >= 0) r = sd_bus_message_close_container(message.get());
  return r < 0 ? nullptr : std::move(message);
}

bool send(const Recipient& to, const Message& message) {
  return message != nullptr && sd_bus_send(to.bus, message.get(), nullptr) >= 0;
}

std::uint64_t queued(const Recipient& to) {
  std::uint64_t count = 0;
  return sd_bus_get_n_queued_write(to.bus, &count) < 0 ? UINT64_MAX : count;
}

}  // namespace swapd::bus
