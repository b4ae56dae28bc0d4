#include "shaping/classes.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/words.h"
#include "config.h"
#include "shaping/io_limits.h"
#include "state/state_file.h"

namespace swapd::daemon {
namespace {

constexpr std::size_t max_classes = 1000;

// As a policy would have it. Numbers and truth values are what they look like.
std::string value_text(const std::string& value) {
  const bool number = !value.empty() && value.size() < 19 && value.find_first_not_of("0123456789") == std::string::npos;
  return number || value == "true" || value == "false" ? value : policy::quoted(value);
}

constexpr auto state_words = words<decide::AutoLimit::State>({{"off", decide::AutoLimit::State::off},
                                                              {"recovering", decide::AutoLimit::State::recovering},
                                                              {"seeking", decide::AutoLimit::State::seeking},
                                                              {"holding", decide::AutoLimit::State::holding},
                                                              {"probing", decide::AutoLimit::State::probing}});

bool one_line(const std::string& text) {
  return text.size() < 4096 &&
         std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
}

std::string table_of(const std::string& name, const std::string& target) {
  const std::string io = "[class." + name + ".io";
  if (target.empty()) return io + "]";
  if (target == "auto" || target == "disk" || target == "network") return io + "." + target + "]";
  return io + ".device." + policy::quoted(target) + "]";
}

}  // namespace

Classes::Classes(Shaper& shaper, const policy::Policy& policy, std::string state_dir)
    : shaper_(shaper), policy_(policy), state_dir_(std::move(state_dir)) {
  for (const auto& [name, rules] : policy_.classes) rules_[name] = rules.io;
}

std::vector<std::string> Classes::begin() {
  std::vector<std::string> notes;
  if (std::ifstream in(file()); !state_dir_.empty() && in) {
    std::ostringstream text;
    text << in.rdbuf();
    // Its settings for a class are all that hold for it, also if it has fewer than the policy.
    const auto kept = policy::parse(text.str(), file());
    if (kept) {
      for (const auto& [name, rules] : kept->classes) {
        const bool said = text.str().find("[class." + name + ".io]\n") != std::string::npos;
        const auto own = policy_.classes.find(name);
        if (own != policy_.classes.end() && (!said || own->second.io == rules.io)) continue;
        rules_[name] = rules.io;
        if (name != "default" || said) changed_.insert(name);
      }
    } else {
      set_aside(file());
      notes.push_back(kept.error().context() + "; set aside as classes.toml.damaged, and the policy's limits hold");
    }
  }
  for (const auto& [name, rules] : rules_) {
    const ResolvedLimits limits = resolve_limits(rules, shaper_.disks());
    for (const auto& [device, why] : limits.unknown) notes.push_back("class " + name + ": ignoring a limit: " + why);
    shaper_.set_class(name, limits.limits, rules.inherit == policy::Inherit::own);
  }
  return notes;
}

void Classes::begin_automatic(AutoLimitController& shaper) {
  automatic_ = &shaper;
  for (const auto& [name, rules] : rules_) automatic_->set(name, rules.automatic);
}

bool Classes::is_open(const std::string& name) const {
  const auto found = policy_.classes.find(name);
  return found == policy_.classes.end() || found->second.open.value_or(true);
}

bool Classes::shaped(const std::string& name) const {
  const auto found = rules_.find(name);
  return found != rules_.end() && (found->second.shaped || found->second.limits() || !policy_.classes.contains(name));
}

Result<policy::IoRules> Classes::changed(const std::string& name, policy::IoRules from,
                                         const std::vector<bus::LimitChange>& changes) const {
  policy::Policy current;
  for (const auto& [other, rules] : rules_) current.classes[other].io.automatic.protects = rules.automatic.protects;
  current.classes[name].io = std::move(from);
  // All of a table at once: one key of it may make no sense without another.
  std::vector<std::pair<std::string, std::string>> tables;
  for (const bus::LimitChange& change : changes) {
    for (const std::string& part : {change.device, change.key, change.value})
      if (!one_line(part)) return Error(EINVAL, "class " + name + ": a limit is one line of printable text");
    const std::string table = table_of(name, change.device);
    auto known = std::ranges::find(tables, table, &std::pair<std::string, std::string>::first);
    if (known == tables.end()) known = tables.insert(known, {table, ""});
    const std::string value =
        change.device == "auto" && change.key == "protects" ? policy::quoted(change.value) : value_text(change.value);
    known->second += policy::quoted(change.key) + " = " + value + "\n";
  }
  for (const auto& [table, keys] : tables) {
    auto read = policy::parse(table + "\n" + keys, "limits", current);
    if (!read) return std::move(read).error();
    current = std::move(read).value();
  }
  policy::IoRules rules = std::move(current.classes.at(name).io);
  std::erase_if(rules.devices, [](const auto& device) { return device.second == policy::IoLimits{}; });
  // One that has gone since it was named is no reason to refuse what is said of others.
  const auto unknown = resolve_limits(rules, shaper_.disks()).unknown;
  for (const bus::LimitChange& change : changes)
    if (const auto missing = unknown.find(change.device); missing != unknown.end())
      return Error(EINVAL, "class " + name + ": " + missing->second);
  return rules;
}

Status Classes::apply(const std::string& name, const policy::IoRules& rules) {
  const ResolvedLimits limits = resolve_limits(rules, shaper_.disks());
  shaper_.set_class(name, limits.limits, rules.inherit == policy::Inherit::own);
  if (automatic_ != nullptr) automatic_->set(name, rules.automatic);
  rules_[name] = rules;
  const auto own = policy_.classes.find(name);
  if (own != policy_.classes.end() && own->second.io == rules)
    changed_.erase(name);
  else
    changed_.insert(name);
  return keep();
}

Status Classes::create(const std::string& name, const std::vector<bus::LimitChange>& changes) {
  if (exists(name)) return Error(EINVAL, "class '" + name + "' exists already; `swapctl class set` changes it");
  if (name == "none") return Error(EINVAL, "a class cannot be called 'none', which says that there is none");
  if (rules_.size() >= max_classes) return Error(ENOSPC, "there are " + std::to_string(max_classes) + " classes");
  if (const auto good = policy::parse("[class." + policy::quoted(name) + "]\n", "class"); !one_line(name) || !good)
    return Error(EINVAL, "the name of a class is 1 to 64 letters, digits, '-' or '_'");
  const auto rules = changed(name, {}, changes);
  if (!rules) return rules.error();
  return apply(name, *rules);
}

Status Classes::set(const std::string& name, const std::vector<bus::LimitChange>& changes) {
  const auto known = rules_.find(name);
  if (known == rules_.end()) return Error(ENOENT, "no class '" + name + "': `swapctl class list` has them");
  const auto rules = changed(name, known->second, changes);
  if (!rules) return rules.error();
  return apply(name, *rules);
}

Status Classes::remove(const std::string& name) {
  if (!exists(name)) return Error(ENOENT, "no class '" + name + "': `swapctl class list` has them");
  if (policy_.classes.contains(name))
    return Error(EINVAL, "class '" + name + "' stands in the policy; it is removed there");
  for (const auto& [other, rules] : rules_)
    if (rules.automatic.protects == name)
      return Error(EINVAL, "class '" + other + "' protects class '" + name + "': `swapctl class set " + other +
                               " --protects none` first");
  if (automatic_ != nullptr) automatic_->set(name, {});
  shaper_.remove_class(name);
  rules_.erase(name);
  changed_.erase(name);
  return keep();
}

// Replaced as a whole, like what write_state() writes.
Status Classes::keep() const {
  if (state_dir_.empty()) return Done{};
  std::string text = "# Written by swapd: what `swapctl class` has changed.\n";
  std::set<std::string> named;  // else they would be unknown if the policy no longer had them
  for (const std::string& name : changed_) {
    const policy::IoRules& rules = rules_.at(name);
    text += policy::io_text(name, rules);
    if (rules.automatic.on() && !changed_.contains(rules.automatic.protects)) named.insert(rules.automatic.protects);
  }
  for (const std::string& name : named) text += "[class." + name + "]\n";
  return replace_file(file(), text);
}

std::vector<bus::ClassView> Classes::views() const {
  std::vector<bus::ClassView> out;
  for (const auto& [name, rules] : rules_) {
    bus::ClassView view{.name = name,
                        .device_mode = rules.mode == policy::IoMode::device,
                        .inherits_own = rules.inherit == policy::Inherit::own,
                        .freezes = rules.mapped == policy::Mapped::freeze,
                        .shaped = shaped(name),
                        .limited = rules.limits(),
                        .of_policy = policy_.classes.contains(name),
                        .changed = changed_.contains(name),
                        .automatic = {},
                        .limits = {},
                        .devices = {}};
    if (const policy::AutoRules& a = rules.automatic; a.on()) {
      view.automatic = {.protects = a.protects, .rate = a.rate, .wait_percent = a.wait_percent, .least = a.least};
      if (const auto now = automatic_ == nullptr ? std::nullopt : automatic_->view(name)) {
        view.automatic->state = state_words.of(now->state);
        view.automatic->limit = now->limit;
        view.automatic->in_vain = now->in_vain;
        view.automatic->moved = now->moved;
        view.automatic->waited = now->waited;
      }
    }
    const auto said = [&](const std::string& device, const policy::IoLimits& l) {
      const auto add = [&](const char* key, const std::optional<std::int64_t>& value) {
        if (value) view.limits.push_back({device, key, *value});
      };
      add("both", l.both);
      add("read", l.read);
      add("write", l.write);
      add("operations", l.operations);
      add("read_operations", l.read_operations);
      add("write_operations", l.write_operations);
      add("burst", l.burst);
    };
    said("disk", rules.disk);
    said("network", rules.network);
    for (const auto& [device, limits] : rules.devices) said(device, limits);
    const std::vector<Shaper::Debt> debts = shaper_.debts(name);
    for (const decide::Shaping::Account& account : shaper_.accounts(name)) {
      const auto least = [](std::initializer_list<std::optional<decide::Tokens>> tokens) {
        std::optional<decide::Tokens> lowest;
        for (const auto& one : tokens)
          if (one && (!lowest || *one < *lowest)) lowest = one;
        return lowest;
      };
      view.devices.push_back(
          {.device = shaper_.device_name(account.device),
           .network = account.device.kind == decide::Device::Kind::network,
           .read_bytes = account.bytes[0],
           .written_bytes = account.bytes[1],
           .cached_bytes = account.cached,
           .mapped_bytes = account.mapped,
           .written_off_bytes = account.written_off,
           .calls = account.calls,
           .delayed_calls = account.delayed,
           .delayed_s = std::chrono::duration<double>(account.waited).count(),
           .limit = least({account.both.limit.bytes, account.read.limit.bytes, account.write.limit.bytes}),
           .tokens = least({account.both.bytes, account.read.bytes, account.write.bytes})});
      for (const Shaper::Debt& debt : debts)
        if (debt.device == account.device) view.devices.back().debts.emplace_back(debt.tid, debt.bytes);
    }
    out.push_back(std::move(view));
  }
  return out;
}

}  // namespace swapd::daemon
