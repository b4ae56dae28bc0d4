#include "policy/io_rules.h"

#include <algorithm>
#include <vector>

#include "base/size.h"

namespace swapd::policy {
namespace {

constexpr auto mode_words = words<IoMode>({{"logical", IoMode::logical}, {"device", IoMode::device}});
constexpr auto inherit_words = words<Inherit>({{"join", Inherit::join}, {"new", Inherit::own}});
constexpr auto mapped_words = words<Mapped>({{"next-call", Mapped::next_call}, {"freeze", Mapped::freeze}});
constexpr std::int64_t max_operations = 1'000'000'000;
constexpr std::size_t max_devices = 64;

// A whole number of bytes, a text such as "10 MiB/s", or "none". 0 would hold a program for ever.
KeyRule bytes(std::string_view key, std::optional<std::int64_t>& place) {
  return {key, [&place, a_second = key != "burst"](const toml::node& node) -> Wrong {
            std::optional<std::int64_t> size;
            std::string said;
            if (const auto* number = node.as_integer()) {
              size = number->get();
              said = std::to_string(*size);
            }
            if (const auto* text = node.as_string()) {
              if (text->get() == "none") {
                place.reset();
                return {};
              }
              said = text->get();
              size = parse_size(said);
            }
            if (!size || *size < 1 || *size > std::int64_t{1} << 50)
              return R"(must be a size such as "10 MiB", a number of bytes from 1, or "none", not )" + shown(node);
            if (std::string why = unlikely_size(said, a_second); !why.empty()) return "is very small: " + why;
            place = *size;
            return {};
          }};
}

KeyRule operations(std::string_view key, std::optional<std::int64_t>& place) {
  return {key, [&place](const toml::node& node) -> Wrong {
            if (const auto* text = node.as_string(); text != nullptr && text->get() == "none") {
              place.reset();
              return {};
            }
            const auto* number = node.as_integer();
            if (number == nullptr || number->get() < 1 || number->get() > max_operations)
              return "must be a whole number " + range_text(1, max_operations) + R"(, or "none", not )" + shown(node);
            place = number->get();
            return {};
          }};
}

std::vector<KeyRule> limit_keys(IoLimits& to) {
  return {bytes("both", to.both),
          bytes("read", to.read),
          bytes("write", to.write),
          operations("operations", to.operations),
          operations("read_operations", to.read_operations),
          operations("write_operations", to.write_operations),
          bytes("burst", to.burst)};
}

// Another class's name, or "none", with which its needs go, too.
KeyRule protects(AutoRules& to) {
  return {"protects", [&to](const toml::node& node) -> Wrong {
            const auto* text = node.as_string();
            if (text == nullptr || text->get().empty() || text->get().size() > 64)
              return R"(must be the name of a class, or "none", not )" + shown(node);
            if (text->get() == "none")
              to = {};
            else
              to.protects = text->get();
            return {};
          }};
}

std::vector<KeyRule> auto_keys(AutoRules& to) {
  const auto wait = [&to](const toml::node& node) -> Wrong {
    if (const auto* text = node.as_string(); text != nullptr && text->get() == "none") {
      to.wait_percent.reset();
      return {};
    }
    const auto* number = node.as_integer();
    if (number == nullptr || number->get() < 1 || number->get() > 99)
      return "must be a whole number " + range_text(1, 99) + R"(, or "none", not )" + shown(node);
    to.wait_percent = static_cast<int>(number->get());
    return {};
  };
  const auto least = [&to](const toml::node& node) -> Wrong {
    std::optional<std::int64_t> size;
    Wrong wrong = bytes("least", size).read(node);
    if (!wrong && !size) wrong = R"(must be a size such as "64 KiB", not )" + shown(node);
    if (!wrong) to.least = *size;
    return wrong;
  };
  return {protects(to), bytes("rate", to.rate), {"wait_percent", wait}, {"least", least}};
}

// An absolute path, MAJOR:MINOR, or the name of a network link (netdevice(7): no '/', no blank, at most 15 bytes).
bool good_device(std::string_view name) {
  const auto plain = [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; };
  if (name.empty() || !std::ranges::all_of(name, plain)) return false;
  if (name.front() == '/') return name.size() < 4096;
  return name.size() <= 15 && name.find_first_of("/ ") == std::string_view::npos;
}

Status table_of(const Entry& entry, const std::string& where, IoLimits& limits, const Complaint& complaint) {
  const toml::table* table = entry.node->as_table();
  if (table == nullptr) return complaint.at(entry.line, "[" + where + "] must be a table, not " + shown(*entry.node));
  return read_table(*table, where, limit_keys(limits), complaint);
}

// With its unit, so that a small one is read again.
std::string exact_size(std::int64_t bytes) {
  std::string out = size_text(bytes);
  if (out.back() <= '9') out += 'B';
  return out;
}

void add_limits(std::string& out, const std::string& table, const IoLimits& limits) {
  if (limits == IoLimits{}) return;
  out += "[" + table + "]\n";
  const auto add = [&](const char* key, const std::optional<std::int64_t>& value, bool size) {
    if (!value) return;
    out += std::string(key) + " = " + (size ? quoted(exact_size(*value)) : std::to_string(*value)) + "\n";
  };
  add("both", limits.both, true);
  add("read", limits.read, true);
  add("write", limits.write, true);
  add("operations", limits.operations, false);
  add("read_operations", limits.read_operations, false);
  add("write_operations", limits.write_operations, false);
  add("burst", limits.burst, true);
}

}  // namespace

bool IoRules::limits() const {
  return automatic.on() || disk.limits() || network.limits() ||
         std::ranges::any_of(devices, [](const auto& entry) { return entry.second.limits(); });
}

bool IoRules::counts_operations() const {
  return disk.counts_operations() ||
         std::ranges::any_of(devices, [](const auto& entry) { return entry.second.counts_operations(); });
}

Status read_io(const toml::table& table, const std::string& where, IoRules& rules, const Complaint& complaint) {
  const std::vector<KeyRule> keys = {flag("shaped", rules.shaped),
                                     word("mode", rules.mode, mode_words),
                                     word("inherit", rules.inherit, inherit_words),
                                     word("mapped", rules.mapped, mapped_words),
                                     flag("favoured_wait", rules.favoured_wait),
                                     flag("io_uring", rules.io_uring),
                                     only_table("auto"),
                                     only_table("disk"),
                                     only_table("network"),
                                     only_table("device")};
  const auto is_table = [](const Entry& e) {
    return e.node->is_table() && (e.key == "auto" || e.key == "disk" || e.key == "network" || e.key == "device");
  };
  if (Status read = read_table(table, where, keys, complaint, is_table); !read) return read;
  for (const Entry& entry : entries(table)) {
    if (!is_table(entry)) continue;
    const std::string name = where + "." + std::string(entry.key);
    if (entry.key == "auto") {
      if (Status read = read_table(*entry.node->as_table(), name, auto_keys(rules.automatic), complaint); !read)
        return read;
      if (!rules.automatic.on() && rules.automatic != AutoRules{})
        return complaint.at(entry.line, "[" + name + "] protects nobody: say 'protects = \"CLASS\"' besides");
      if ("class." + rules.automatic.protects + ".io" == where)
        return complaint.at(entry.line, "[" + name + "] protects itself: 'protects' names another class");
      continue;
    }
    if (entry.key != "device") {
      IoLimits& limits = entry.key == "disk" ? rules.disk : rules.network;
      if (Status read = table_of(entry, name, limits, complaint); !read) return read;
      continue;
    }
    for (const Entry& device : entries(*entry.node->as_table())) {
      const std::string of_device = name + "." + quoted(printable(device.key));
      if (!good_device(device.key))
        return complaint.at(
            device.line, "[" + of_device + "] names no device: give an absolute path, MAJOR:MINOR, or a network link");
      if (rules.devices.size() >= max_devices && !rules.devices.contains(device.key))
        return complaint.at(device.line, "[" + where + "] has more than " + std::to_string(max_devices) + " devices");
      if (Status read = table_of(device, of_device, rules.devices[std::string(device.key)], complaint); !read)
        return read;
    }
  }
  return Done{};
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string io_text(std::string_view class_name, const IoRules& rules) {
  const std::string table = "class." + std::string(class_name) + ".io";
  std::string out = "[" + table + "]\n";
  out += std::string("shaped = ") + (rules.shaped ? "true" : "false") + "\n";
  out += "mode = " + quoted(mode_words.of(rules.mode)) + "\n";
  out += "inherit = " + quoted(inherit_words.of(rules.inherit)) + "\n";
  out += "mapped = " + quoted(mapped_words.of(rules.mapped)) + "\n";
  out += std::string("favoured_wait = ") + (rules.favoured_wait ? "true" : "false") + "\n";
  out += std::string("io_uring = ") + (rules.io_uring ? "true" : "false") + "\n";
  if (const AutoRules& a = rules.automatic; a.on()) {
    out += "[" + table + ".auto]\nprotects = " + quoted(a.protects) + "\n";
    if (a.rate) out += "rate = " + quoted(exact_size(*a.rate)) + "\n";
    if (a.wait_percent) out += "wait_percent = " + std::to_string(*a.wait_percent) + "\n";
    out += "least = " + quoted(exact_size(a.least)) + "\n";
  }
  add_limits(out, table + ".disk", rules.disk);
  add_limits(out, table + ".network", rules.network);
  for (const auto& [device, limits] : rules.devices) add_limits(out, table + ".device." + quoted(device), limits);
  return out;
}

}  // namespace swapd::policy
