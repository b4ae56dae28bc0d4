// The link of two ranks on two nodes: a TCP connection without Nagle's delay, as MPI libraries have it. A rank waits
// for a message in one of the four ways of rank.h: it looks again and again (MSG_DONTWAIT), gives up its CPU between
// looks, looks for a while and then sleeps in poll(2), or sleeps at once.
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "coscheduling/job_area.h"

namespace swapd::bench {

class RankLink {
 public:
  // Takes a connection at its own address, and ETIMEDOUT after ten seconds; or connects to that, as long.
  [[nodiscard]] static Result<RankLink> take(const std::string& address);
  [[nodiscard]] static Result<RankLink> connect(const std::string& address);
  // One message. False: the other rank is gone.
  [[nodiscard]] bool send();
  [[nodiscard]] bool receive(JobReceive how, std::int64_t spin_ns);

 private:
  explicit RankLink(Fd connection) : connection_(std::move(connection)) {}
  Fd connection_;
  std::uint32_t read_ = 0;  // bytes of the message that is coming in
};

}  // namespace swapd::bench
