// Finds out what a call is about to move, and to or from which device: from its arguments, the memory that they point
// to, and its descriptors. One thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/fd.h"
#include "decide/shaping/caller.h"
#include "observe/io/io_calls.h"
#include "observe/io/io_target.h"
#include "shaping/device_estimate.h"
#include "shaping/shaping_parts.h"

namespace swapd::daemon {

class CallInspector {
 public:
  // listener: tells whether a call still waits, so that the memory that was read was its own.
  CallInspector(const ShapingParts& parts, std::shared_ptr<const Fd> listener);

  // The thread that makes the call.
  struct Subject {
    pid_t tid = 0, tgid = 0;
    std::optional<decide::Device> disk;  // the last one that it used
    const decide::ClassLimits& limits;
    bool traffic = false;  // it is counted
  };
  // None: the call is not to be held. Without transfers: it moves nothing that is limited.
  [[nodiscard]] std::optional<decide::WantedCall> wanted(const observe::IoCall& call,
                                                         const sys::Notification& notification, const Subject& subject,
                                                         Time now);
  // The disk of the process's mapped files; and of its directories and inodes.
  [[nodiscard]] decide::Device disk_of_pages(const Subject& subject, Time now);
  [[nodiscard]] decide::Device disk_of_directories(const Subject& subject, decide::Device otherwise, Time now);
  // The devices of most of its open files and connections, as a ring's requests made it look for last.
  [[nodiscard]] FileDevices known_files(pid_t tgid) const { return likely_.known(tgid); }

 private:
  using Call = observe::IoCall;
  using Notification = sys::Notification;
  using Wanted = decide::WantedCall;
  [[nodiscard]] Wanted wanted_of_entry(const Call& call, const Notification& notification, const Subject& subject,
                                       Time now);
  [[nodiscard]] Wanted wanted_of_ring(const Subject& subject, Time now);
  [[nodiscard]] Wanted wanted_of_submission(const std::vector<observe::IoRequest>& requests, const Subject& subject,
                                            Time now);
  [[nodiscard]] Wanted wanted_of_bytes(const Call& call, const Notification& notification,
                                       const observe::ReadTarget& read, const Subject& subject, Time now);
  void add_transfer(Wanted& want, const Call& call, const Notification& notification, std::uint8_t arg,
                    decide::IoDirection direction, const observe::IoTarget& target, const observe::ReadTarget& read,
                    const Subject& subject) const;
  struct Left {
    decide::Tokens bytes = 1, cached = 0;  // cached: of them, and free
  };
  [[nodiscard]] Left left_in_file(const Call& call, const Notification& notification, std::int64_t size,
                                  const observe::ReadTarget& read, const Subject& subject, decide::Tokens asked) const;
  [[nodiscard]] decide::Tokens through_pipe(const Call& call, const Notification& notification,
                                            decide::Tokens asked) const;

  std::shared_ptr<const Fd> listener_;
  observe::IoTargets targets_;
  LikelyDevices likely_;
};

// How the ledger knows what such a call has moved.
[[nodiscard]] decide::CallKind kind_of(const observe::IoCall& call);

}  // namespace swapd::daemon
