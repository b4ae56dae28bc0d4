// The classes with their limits, and which process is in which. Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "decide/shaping/shaping.h"

namespace swapd::decide {

// A class as a gate sees it. It is not changed: another view takes its place.
struct ClassView {
  std::string name;
  std::string of;  // the class whose limits they are
  Shaping::ClassIndex index = 0;
  ClassLimits limits;
  bool limited = false;
  bool limits_networks = false;
  bool inherits_own = false;
  std::optional<Shaping::ClassIndex> like;  // of a class that one process has for itself: whose limits
};
using ClassViewPtr = std::shared_ptr<const ClassView>;

class ClassTable {
 public:
  explicit ClassTable(Shaping& shaping) : shaping_(shaping) {}
  ClassTable(const ClassTable&) = delete;
  ClassTable& operator=(const ClassTable&) = delete;

  // Makes the class, or changes it. inherits_own: children get a class of their own that is like their parent's.
  void set(const std::string& name, const ClassLimits& limits, bool inherits_own, Time now);
  // Besides what it has: a limit of its disks, reading and writing together. Nothing: none. What is owed at the rate
  // before is cut to what the new one brings in two seconds: it would be paid for minutes at a much lower rate.
  // False: there is nothing to change.
  bool set_automatic(const std::string& name, std::optional<Tokens> bytes, Time now);
  // Its members are in no class then. False: no such class.
  bool remove(const std::string& name);

  // --- members; by process id ---
  // No such class: the process leaves the one that it is in. A process with a class of its own that is like this one
  // stays there.
  void join(pid_t tgid, const std::string& class_name, Time now);
  // A child of that member: into its class, or one of its own.
  void born(pid_t tgid, pid_t parent, Time now);
  // A class that the process had for itself ends with it; what it has moved stays the class's.
  void leave(pid_t tgid, Time now);
  // It is limited no more, though its calls still come to a gate. start_time: tells it from a later one with its id.
  void release(pid_t tgid, std::uint64_t start_time, Time now);

  struct Member {
    ClassViewPtr view;                      // null: not in a class
    std::optional<std::uint64_t> released;  // start time of the process that was released
  };
  [[nodiscard]] Member member(pid_t tgid) const;
  [[nodiscard]] const ClassViewPtr& unlimited() const { return unlimited_; }
  [[nodiscard]] ClassViewPtr find(const std::string& name) const;  // null: no such class
  // The class by that view now, which may have changed since; nothing: it is no more.
  [[nodiscard]] std::optional<Shaping::ClassIndex> index_of(const ClassView& view) const;
  // The class, and those that single processes of it have for themselves.
  [[nodiscard]] std::vector<ClassViewPtr> views_of(const std::string& name) const;
  // Members that pay at once for pages of mapped files.
  [[nodiscard]] std::unordered_map<pid_t, ClassViewPtr> paying_at_once() const;
  // The sum over views_of(), by device.
  [[nodiscard]] std::vector<Shaping::Account> accounts(const std::string& name, Time now) const;
  // Changes with each change of a member or a view.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }

 private:
  static constexpr std::size_t max_released = 10'000;
  struct Said {
    ClassLimits limits;
    bool inherits_own = false;
    std::optional<Tokens> automatic;
  };
  void apply(const std::string& name, Time now);
  void set_view(ClassView view, Time now);

  Shaping& shaping_;
  std::map<std::string, Said> said_;
  std::unordered_map<Shaping::ClassIndex, ClassViewPtr> views_;
  ClassViewPtr unlimited_ = std::make_shared<const ClassView>();
  std::unordered_map<pid_t, Shaping::ClassIndex> members_;
  std::unordered_map<pid_t, std::uint64_t> released_;  // start times
  std::uint64_t generation_ = 1;
};

}  // namespace swapd::decide
