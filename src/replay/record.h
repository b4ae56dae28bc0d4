// The parts of a recording: everything that the model and the deciders were fed with, in order, and what
// came out.
//
// docs/recording.md has the format. Times are nanoseconds since the recording's begin, once they have been read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/event.h"
#include "decide/coscheduling/coscheduling_decider.h"
#include "decide/donation/donation_decider.h"
#include "decide/levels/levels_decider.h"
#include "decide/memory/memory_decider.h"
#include "decide/panel.h"
#include "decide/shaping/auto_limit_decider.h"
#include "model/model.h"

namespace swapd::replay {

inline constexpr std::string_view format_name = "swapd-recording";
inline constexpr std::uint64_t format_version = 4;

// The first line. All but the version is for the reader's information.
struct Header {
  std::string swapd;    // the version that recorded
  std::string boot_id;  // of the machine's run
  double time = 0;      // CLOCK_REALTIME, in seconds
  std::uint64_t start_ns = 0;
};

// The state of all at this moment: replaces whatever the replayer has. After the header, and after each gap.
struct Snapshot {
  Time time;
  model::Image model;
  std::vector<decide::DeciderState> deciders;
};

// The thread has left the managed set: Panel::forget().
struct Left {
  ThreadId thread;
};

// Result of the turn before it, and was applied: everything that is demanded, after arbitration.
struct Granted {
  Time time;
  std::vector<decide::Grant> grants;
  decide::Panel::Limits limits;
  std::vector<pid_t> away;  // processes, sorted
  bool operator==(const Granted&) const = default;
};

// So many records are missing here; settings, rules and a snapshot follow, or the end.
struct Gap {
  std::uint64_t lost = 0;
};

// The last line of a recording that was ended, and not cut off.
struct End {
  std::uint64_t events = 0, decisions = 0, lost = 0;
};

using Record = std::variant<Header, model::Settings, decide::DonationConfig, decide::BudgetConfig,
                            decide::CoschedulingConfig, decide::LevelsConfig, decide::MemoryConfig, Snapshot, Event,
                            decide::Input, decide::Turn, Left, Granted, Gap, End>;

}  // namespace swapd::replay
