// The user that asks for something, and their rights beyond the everyday (polkit(8), systemd/org.swapd1.policy).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>

namespace swapd::bus {

enum class Right : std::uint8_t {
  view,            // what concerns other users' programs
  manage_own,      // enroll, release and set their own
  manage_others,   // and other users'
  record,          // follow events and record them: when each thread blocks and wakes
  raise_priority,  // above what setpriority(2) and sched_setattr(2) would let them
  set_limits,      // make, change and remove classes with I/O limits, and take programs out of them
  administer,      // restart, pause, put programs into closed classes
};
inline constexpr std::size_t rights = 7;
// The polkit action: "org.swapd1.manage-others".
[[nodiscard]] std::string_view action(Right right);

class Rights {
 public:
  constexpr Rights() = default;
  constexpr Rights(std::initializer_list<Right> all) {
    for (const Right one : all) add(one);
  }
  constexpr void add(Right right) { mask_ = static_cast<std::uint8_t>(mask_ | 1U << static_cast<unsigned>(right)); }
  constexpr void add(Rights others) { mask_ = static_cast<std::uint8_t>(mask_ | others.mask_); }
  [[nodiscard]] constexpr bool has(Right right) const { return (mask_ >> static_cast<unsigned>(right) & 1U) != 0; }
  bool operator==(const Rights&) const = default;

 private:
  std::uint8_t mask_ = 0;
};
inline constexpr Rights all_rights = {Right::view,           Right::manage_own, Right::manage_others, Right::record,
                                      Right::raise_priority, Right::set_limits, Right::administer};

class Caller {
 public:
  Caller() = default;  // an unknown user, without rights
  // may_ask: a right that the caller lacks may yet be granted (Authority).
  Caller(std::uint32_t uid, Rights has, bool may_ask = false) : uid_(uid), rights_(has), may_ask_(may_ask) {}
  [[nodiscard]] static Caller root() { return {0, all_rights}; }

  [[nodiscard]] std::uint32_t uid() const { return uid_; }
  [[nodiscard]] Rights rights() const { return rights_; }
  [[nodiscard]] bool may_ask() const { return may_ask_; }
  // Asked where something depends on the right: the first one that is missing is remembered, by copies too.
  [[nodiscard]] bool may(Right right) const {
    if (rights_.has(right)) return true;
    if (!*missing_) *missing_ = right;
    return false;
  }
  [[nodiscard]] std::optional<Right> missing() const { return *missing_; }

 private:
  std::uint32_t uid_ = UINT32_MAX;
  Rights rights_;
  bool may_ask_ = false;
  std::shared_ptr<std::optional<Right>> missing_ = std::make_shared<std::optional<Right>>();
};

}  // namespace swapd::bus
