#include "cli/sched_options.h"

#include <string>

#include "cli/failure.h"

namespace swapd::cli {

SchedOptions::SchedOptions(CLI::App& app, bool with_other) {
  const auto number = [&](const std::string& name, int& value, const char* what, int low, int high) {
    return app.add_option(name, value, what)->check(CLI::Range(low, high).description(""));
  };
  nice_option_ =
      number("--nice", nice_, "This nice value, -20…19; the class stays, as with renice(1)", -20, 19)->type_name("N");
  fifo_option_ = number("--fifo", fifo_, "Real-time, first in first out, 1…92 (swapd itself has 93)", 1, max_realtime)
                     ->type_name("P");
  rr_option_ = number("--rr", rr_, "Real-time, round robin, 1…92", 1, max_realtime)->type_name("P");
  if (with_other) other_option_ = app.add_flag("--other", other_, "An ordinary thread, nice 0");
  for (CLI::Option* option : {nice_option_, fifo_option_, rr_option_, other_option_})
    if (option != nullptr) option->group("Priority, one of");
}

Result<std::optional<AskedPriority>> SchedOptions::asked() const {
  std::size_t given = 0;
  for (const CLI::Option* option : {nice_option_, fifo_option_, rr_option_, other_option_})
    if (option != nullptr && option->count() > 0) ++given;
  if (given == 0) return std::optional<AskedPriority>();
  if (given > 1) return user_mistake("--nice, --fifo, --rr and --other exclude one another: give only one");
  if (nice_option_->count() > 0) return std::optional(AskedPriority::only_nice(nice_));
  SchedAttr attr;
  if (fifo_option_->count() > 0) {
    attr.policy = SchedPolicy::fifo;
    attr.rt_priority = static_cast<std::uint8_t>(fifo_);
  } else if (rr_option_->count() > 0) {
    attr.policy = SchedPolicy::rr;
    attr.rt_priority = static_cast<std::uint8_t>(rr_);
  }
  return std::optional(AskedPriority(attr));
}

}  // namespace swapd::cli
