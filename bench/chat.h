// The processes of a chat, as `chat` runs them, and `soak` beside other loads.
#pragma once

#include "harness/rates.h"
#include "harness/workload.h"

namespace swapd::bench {

// Both processes of a run, with all users connected and silent until the gate opens.
class Chat {
 public:
  // daemon: one that runs already, and goes on; null: one of its own where the setup says so.
  [[nodiscard]] static Result<Chat> open(const Context& context, const Setup& setup, const Daemon* daemon = nullptr);
  [[nodiscard]] Team& team() { return *team_; }
  // Messages delivered a second, once the client has said "done". Ends both.
  [[nodiscard]] Result<double> close();
  [[nodiscard]] static std::uint64_t deliveries(const Options::Chat& chat);

 private:
  Chat(std::unique_ptr<Team> team, std::uint64_t deliveries) : team_(std::move(team)), deliveries_(deliveries) {}
  std::unique_ptr<Team> team_;
  std::uint64_t deliveries_;
};

[[nodiscard]] Setup chat_setup(const Options& options);

}  // namespace swapd::bench
