#include "decide/shaping/class_table.h"

#include <algorithm>
#include <utility>

namespace swapd::decide {
namespace {

constexpr Duration max_owed = std::chrono::seconds(2);  // at an automatic limit that has just been set

}  // namespace

void ClassTable::set_view(ClassView view, Time now) {
  view.index = shaping_.set(view.name, view.limits, now);
  views_[view.index] = std::make_shared<const ClassView>(view);
  ++generation_;
}

void ClassTable::set(const std::string& name, const ClassLimits& limits, bool inherits_own, Time now) {
  Said& said = said_[name];
  said.limits = limits;
  said.inherits_own = inherits_own;
  apply(name, now);
}

bool ClassTable::set_automatic(const std::string& name, std::optional<Tokens> bytes, Time now) {
  const auto said = said_.find(name);
  if (said == said_.end() || said->second.automatic == bytes) return false;
  said->second.automatic = bytes;
  apply(name, now);
  for (const ClassViewPtr& view : views_of(name)) shaping_.cap_debt(view->index, max_owed, now);
  return true;
}

// For the class, and those that are like it.
void ClassTable::apply(const std::string& name, Time now) {
  const Said& said = said_.at(name);
  const ClassLimits limits = said.automatic ? said.limits.with_disks_below(*said.automatic) : said.limits;
  ClassView view{.name = name,
                 .of = name,
                 .limits = limits,
                 .limited = limits.limits(),
                 .limits_networks = limits.limits_networks(),
                 .inherits_own = said.inherits_own,
                 .like = std::nullopt};
  set_view(view, now);
  view.like = shaping_.find(name);
  std::vector<std::string> alike;
  for (const auto& [index, other] : views_)
    if (other->like == view.like) alike.push_back(other->name);
  for (std::string& other : alike) {
    view.name = std::move(other);
    set_view(view, now);
  }
}

bool ClassTable::remove(const std::string& name) {
  said_.erase(name);
  ++generation_;
  const auto base = shaping_.find(name);
  if (!base) return false;
  std::erase_if(views_, [&](const auto& entry) {
    const bool gone = entry.first == *base || entry.second->like == base;
    if (!gone) return false;
    shaping_.remove(entry.second->name);
    std::erase_if(members_, [&](const auto& member) { return member.second == entry.first; });
    return true;
  });
  return true;
}

void ClassTable::join(pid_t tgid, const std::string& class_name, Time now) {
  ++generation_;
  released_.erase(tgid);
  const auto index = shaping_.find(class_name);
  if (const auto member = members_.find(tgid); member != members_.end() && index) {
    const auto own = views_.find(member->second);
    if (own != views_.end() && own->second->like == index) return;
  }
  leave(tgid, now);
  if (index) members_[tgid] = *index;
}

void ClassTable::born(pid_t tgid, pid_t parent, Time now) {
  ++generation_;
  const auto above = members_.find(parent);
  if (above == members_.end()) return;
  const auto view = views_.find(above->second);
  if (view == views_.end() || !view->second->inherits_own) {
    members_[tgid] = view == views_.end() ? above->second : view->second->like.value_or(above->second);
    return;
  }
  ClassView own = *view->second;
  if (!own.like) own.like = own.index;
  own.name = own.of + "#" + std::to_string(tgid);
  set_view(own, now);
  members_[tgid] = *shaping_.find(own.name);
}

void ClassTable::leave(pid_t tgid, Time now) {
  const auto member = members_.find(tgid);
  if (member == members_.end()) return;
  const auto view = views_.find(member->second);
  members_.erase(member);
  ++generation_;
  if (view == views_.end() || !view->second->like) return;
  shaping_.merge_into(view->second->name, *view->second->like, now);
  views_.erase(view);
}

void ClassTable::release(pid_t tgid, std::uint64_t start_time, Time now) {
  leave(tgid, now);
  ++generation_;
  if (released_.size() >= max_released) released_.clear();
  released_[tgid] = start_time;
}

ClassTable::Member ClassTable::member(pid_t tgid) const {
  if (const auto member = members_.find(tgid); member != members_.end()) {
    const auto found = views_.find(member->second);
    return {.view = found == views_.end() ? unlimited_ : found->second, .released = std::nullopt};
  }
  const auto released = released_.find(tgid);
  return {.view = nullptr, .released = released == released_.end() ? std::nullopt : std::optional(released->second)};
}

ClassViewPtr ClassTable::find(const std::string& name) const {
  const auto index = shaping_.find(name);
  const auto found = index ? views_.find(*index) : views_.end();
  return found == views_.end() ? nullptr : found->second;
}

std::optional<Shaping::ClassIndex> ClassTable::index_of(const ClassView& view) const {
  if (const auto found = views_.find(view.index); found != views_.end() && found->second.get() == &view)
    return view.index;
  return shaping_.find(view.name);
}

std::vector<ClassViewPtr> ClassTable::views_of(const std::string& name) const {
  std::vector<ClassViewPtr> out;
  for (const auto& [index, view] : views_)
    if (view->of == name) out.push_back(view);
  return out;
}

std::unordered_map<pid_t, ClassViewPtr> ClassTable::paying_at_once() const {
  std::unordered_map<pid_t, ClassViewPtr> out;
  if (std::ranges::none_of(views_, [](const auto& entry) { return entry.second->limits.freezes; })) return out;
  for (const auto& [tgid, index] : members_) {
    const auto found = views_.find(index);
    if (found != views_.end() && found->second->limited && found->second->limits.freezes) out[tgid] = found->second;
  }
  return out;
}

std::vector<Shaping::Account> ClassTable::accounts(const std::string& name, Time now) const {
  const auto index = shaping_.find(name);
  if (!index) return {};
  auto all = shaping_.accounts(*index, now);
  for (const auto& [other, view] : views_) {
    if (view->like != index) continue;
    for (const Shaping::Account& account : shaping_.accounts(other, now)) {
      const auto same = std::ranges::find(all, account.device, &Shaping::Account::device);
      if (same == all.end())
        all.push_back(account);
      else
        same->add(account);
    }
  }
  return all;
}

}  // namespace swapd::decide
