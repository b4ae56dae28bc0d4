// Threads that are not managed and pass messages on between managed ones: a message bus, a proxy.
//
// A client of a message bus sends its request to the bus, and waits on a socket whose other end the bus has. The bus
// sleeps again when it has woken the service, so the thread that it woke between the client's message and that sleep is
// the client's provider; and when it wakes the client, the thread that woke the bus last has answered. The kernel's
// programs tell each block and wake of such a thread, as of a watched one; nothing is ever lent to it.
//
// A process that holds the other end of a socket need not pass anything on: an X server and a database answer
// themselves. A thread that they wake is a guess until one round trip (client, relay, service, relay, client) has been
// seen; message buses are known by their names. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/resource.h"
#include "base/thread_id.h"
#include "base/time.h"

namespace swapd::observe {

// Known without having been seen at work, by the name of the program.
[[nodiscard]] bool is_message_bus(std::string_view comm);

class Relays {
 public:
  static constexpr std::size_t max_threads = 24;   // then the one that was of use least recently makes room
  static constexpr std::size_t max_ends = 4096;    // sockets; then those that are asked for come anew
  static constexpr std::size_t max_runs = 16;      // of a thread, that are remembered
  static constexpr std::size_t max_passed_to = 4;  // of one run; more are a signal to everything on the bus

  // The thread holds the other end of `resource`. True: it is new here, and is to be observed from now on; until that
  // has told, it counts as awake. `dropped` gets those that made room.
  [[nodiscard]] bool holds(const Resource& resource, ThreadId thread, std::vector<ThreadId>& dropped);
  void forget(ThreadId thread);
  [[nodiscard]] bool knows(pid_t tid) const { return threads_.contains(tid); }
  [[nodiscard]] std::optional<ThreadId> thread(pid_t tid) const;
  [[nodiscard]] bool proven(pid_t tid) const;
  // A round trip through it was seen.
  void prove(pid_t tid);
  // It has woken a managed thread for another one's message.
  [[nodiscard]] bool passes_on(pid_t tid) const;
  void passed_on(pid_t tid);

  // `by`, a thread of that process, has woken the relay, which had made so many wakes before.
  void woken(pid_t tid, pid_t by, pid_t process, Time time, std::uint32_t wakes_before);
  void blocked(pid_t tid, Time time);
  // The end of its present run is to be told. take_asked() returns whether that was so, and clears it.
  void ask(pid_t tid);
  [[nodiscard]] bool take_asked(pid_t tid);
  // The thread that woke it last; 0: not known.
  [[nodiscard]] pid_t last_sender(pid_t tid) const;
  // That was after `time`: what it was woken for may answer a wait which began then. A relay that was awake already may
  // have answered by itself.
  [[nodiscard]] bool woken_after(pid_t tid, Time time) const;

  // A run in which a message that the waiter's process sent, before it began to wait on one of `awaited`, may have
  // reached the relay: the message woke the relay, or the relay was awake as the wait began. (One thread may send what
  // another one waits for.)
  struct Run {
    pid_t tid = 0;  // of the relay
    bool over = false;
    bool began_it = false;    // the waiter's process woke the relay
    bool unseen = false;      // it began before the relay was observed: its wakes may have been before that, too
    Time from{};              // it began then, if it was seen
    std::uint32_t first = 0;  // its wakes in this run: this one …
    std::uint32_t last = 0;   // … to this one
  };
  // before: the end of the waiter's last wait. Nothing: the relay has heard nothing of it since then.
  [[nodiscard]] std::optional<Run> run_of(pid_t process, std::span<const Resource> awaited, Time before,
                                          Time since) const;
  // The one of `awaited` whose other end this relay has.
  [[nodiscard]] std::optional<Resource> end_of(pid_t tid, std::span<const Resource> awaited) const;
  [[nodiscard]] bool empty() const { return threads_.empty(); }

 private:
  struct Awake {
    pid_t by = 0;
    pid_t process = 0;  // that thread's
    Time from{};
    Time to = Time::max();
    std::uint32_t wakes_before = 0;
    bool unseen = false;
  };
  struct Thread {
    ThreadId id;
    bool passes_on = false;
    bool proven = false;
    bool asked = false;
    std::uint64_t used = 0;
    std::deque<Awake> runs;  // the last one is the newest
  };
  std::unordered_map<pid_t, Thread> threads_;
  std::unordered_map<Resource, std::vector<pid_t>> ends_;
  std::uint64_t uses_ = 0;
};

}  // namespace swapd::observe
