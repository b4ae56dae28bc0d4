// Donations that outlive their wait: a requester that keeps coming back to the same resource keeps its providers
// boosted for a moment, so that a chain of short waits is one donation (docs/design.md, Donation). Pure.
//
// A wait's *deepest* donation is the one with the longest way so far: the deeper providers of a chain deliver before
// the wait ends, and the next request finds the whole way open only if they stay boosted too.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "decide/decider.h"
#include "decide/donation/provider_choice.h"

namespace swapd::decide {

class Linger {
 public:
  struct Config {
    // CPU time of the provider, as the requester's class has it. 0: nothing lingers.
    std::function<Duration(ThreadId requester)> time;
    Duration wall = std::chrono::milliseconds(50);  // it ends then whatever CPU time was used
  };
  explicit Linger(Config config) : config_(std::move(config)) {}

  struct Lingering {
    Donation donation;
    bool moved = false;       // the wait goes on, for something else
    bool first_half = false;  // of a chain's time; then what has delivered lets the woken threads go first
    Duration period{}, wall{}, wall_uncounted{};
    std::uint64_t serial = 0;  // of its timer; 0: not armed yet
    template <typename Self, typename Archive>
    static void state(Self& self, Archive& archive) {
      archive(self.donation, self.moved, self.first_half, self.period, self.wall, self.wall_uncounted, self.serial);
    }
  };

  // Two waits of the same requester, for the same resource, of the same direct provider.
  [[nodiscard]] static bool same_wait(const Donation& a, const Donation& b);

  // These donations are in force: their ways may be the deepest of their waits so far, and what lingers for the same
  // requester ends unless it has a longer way of the same wait.
  void renew(const Vector<Donation>& current);
  // The wait is over; what it was for last lingers, if its requester has come back to it before. The thread that has
  // ended it, if one did, is one to come back to, boosted or not.
  void wait_ended(ThreadId requester, std::optional<ThreadId> by = {});
  // The awaited resource has become another, as when its connection was accepted: until a provider of that is
  // known, the help goes on.
  void moved(const Donation& before);
  // The deeper ones of a chain have delivered, and the wait is not over: the whole way stays open. `waits`: the
  // requester waits for the resource still; `open`: it donates, or something has changed for it.
  void keep_ways_open(const Vector<Donation>& current, const std::function<bool(ThreadId, const Resource&)>& waits,
                      const std::function<bool(ThreadId)>& open);
  void end(ThreadId requester);
  void end_moved(ThreadId requester);
  // Those that the predicate names.
  void end_if(const std::function<bool(const Lingering&)>& over);
  void forget_way(ThreadId requester) { deepest_.erase(requester); }
  // Nothing may name the thread any more.
  void forget(ThreadId thread);

  // Its time is over. True: it goes on, for the other half of its time or because the requester waits again, untold;
  // `first_half_over`: threads that have delivered are to give way.
  bool expired(ThreadId requester, const TimerFired& fired, bool& first_half_over);
  // Begins the timers of what has begun to linger.
  void arm();
  void add_timers(std::vector<Timer>& out) const;

  [[nodiscard]] const Map<ThreadId, Lingering>& all() const { return lingering_; }
  [[nodiscard]] const Lingering* of(ThreadId requester) const;

  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    archive(self.lingering_, self.deepest_, self.recent_, self.next_serial_);
  }

 private:
  // Resources that a requester waited for last, and the threads that provided them: two locks taken in turn are one
  // conversation, and so are the fifty connections that one server answers.
  struct Recent {
    std::array<Resource, 4> resources;
    std::array<ThreadId, 4> providers;
    std::uint64_t next = 0, next_provider = 0;
    template <typename Self, typename Archive>
    static void state(Self& self, Archive& archive) {
      archive(self.resources, self.providers, self.next, self.next_provider);
    }
  };
  [[nodiscard]] bool comes_back(const Donation& donation) const;
  void end_donation(ThreadId requester);
  static void note_provider(Recent& recent, ThreadId provider);

  Config config_;
  Map<ThreadId, Lingering> lingering_;  // by requester
  Map<ThreadId, Donation> deepest_;     // by requester: the longest way of its present wait
  Map<ThreadId, Recent> recent_;        // by requester
  std::uint64_t next_serial_ = 1;
};

}  // namespace swapd::decide
