// One run of one configuration: swapd where it is asked for, the processes of the workload, the hogs; and the end of
// them all.
//
// Order: swapd, roles (each says "ready"), hogs, and then the gate opens: a pipe at which all roles read and whose
// other end is closed, so that one wake-up starts all of them and the more important runs first. With a word to each, a
// server by hand in the real-time class would compute while the harness has no CPU to tell the client. By hand
// ("hand-set") every role but the client gets what swapd would lend at best: the client's class one priority lower (so
// that the client runs at once when it wakes, docs/design.md, Donation), or its nice value and, in a session of its
// own, its group's.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "harness/process.h"
#include "harness/report.h"
#include "harness/shared.h"
#include "harness/work.h"
#include "options.h"

namespace swapd::bench {

struct Context {
  const Options& options;
  Work work;
  std::vector<int> cpus;
  std::string self;  // path of swapbench
};

// A private swapd with its socket and state in `dir`.
// The CPUs and the network of a swapd; nothing said: the harness's.
struct DaemonPlace {
  std::vector<int> cpus;
  int network = -1;  // as Spawn has it
};

class Daemon {
 public:
  Daemon() = default;
  Daemon(Daemon&&) = default;
  Daemon& operator=(Daemon&&) = delete;
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  ~Daemon() { (void)stop(); }
  [[nodiscard]] static Result<Daemon> start(const Options& options, const std::string& dir,
                                            const DaemonPlace& place = {});
  [[nodiscard]] const std::string& socket() const { return socket_; }
  [[nodiscard]] pid_t pid() const { return child_.pid(); }
  [[nodiscard]] Result<nlohmann::json> ask(const std::vector<std::string>& verb) const;  // swapctl VERB… --json
  [[nodiscard]] Status order(const std::vector<std::string>& verb) const;                // the same, without an answer
  [[nodiscard]] Status stop();  // SIGTERM, and its and its guard's end awaited

 private:
  Child child_;
  std::string swapctl_, socket_, log_;
};

struct RoleSpec {
  RoleOptions role;                 // role, mechanism, word, index, fds; the rest is filled in
  bool important = false;           // the client
  bool no_donation = false;         // not even by hand
  bool outside = false;             // not managed by swapd
  std::string class_name;           // under swapd; empty: "default"
  std::vector<std::string> prefix;  // a program that starts it, with its arguments
};

class Team {
 public:
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team() { end_all(hogs_); }
  // daemon: one that serves others too and goes on; null: one of the team's own, where the setup is under swapd.
  [[nodiscard]] static Result<std::unique_ptr<Team>> make(const Context& context, const Setup& setup,
                                                          const Daemon* daemon = nullptr);
  [[nodiscard]] Status add(const RoleSpec& spec);
  // What it starts with, and has again when nothing is lent to it.
  [[nodiscard]] SchedAttr own_attr(const RoleSpec& spec) const;
  // Waits for "ready" of all.
  [[nodiscard]] Status await_ready();
  // The same, if it was not done; starts the hogs.
  [[nodiscard]] Status load_up();
  // The same, if it was not done; opens the gate.
  [[nodiscard]] Status begin();
  // Waits for one line of role `index` (in the order of add). Any role's failure or end is an error.
  [[nodiscard]] Result<std::string> line_of(std::size_t index, std::chrono::milliseconds at_most);
  // Tells role 0 to run a batch of its calls, and waits for what it says: how many milliseconds the batch took.
  [[nodiscard]] Result<double> run_batch();
  // Waits for the client (role 0) to say "done"; then ends all and gives its samples and, under swapd, its counters.
  [[nodiscard]] Result<Measured> finish();
  [[nodiscard]] Result<Measured> finish_after_done();  // "done" was read with line_of
  // The longest that a sound run may take.
  [[nodiscard]] std::chrono::seconds limit() const;

  [[nodiscard]] Shared& shared() { return *shared_; }
  [[nodiscard]] const std::string& dir() const { return dir_.path(); }
  [[nodiscard]] const Daemon* daemon() const { return daemon_; }
  [[nodiscard]] pid_t pid_of(std::size_t index) const { return members_.at(index).child.pid(); }
  [[nodiscard]] const std::vector<Child>& hogs() const { return hogs_; }
  [[nodiscard]] int control_of(std::size_t index) const { return members_.at(index).control.get(); }

 private:
  struct Member {
    Child child;
    Fd control;
    std::string name;
    std::deque<std::string> lines;  // said, and not yet asked for
    bool ready = false;
  };
  Team(const Context& context, const Setup& setup, TempDir dir)
      : context_(context), setup_(setup), dir_(std::move(dir)) {}
  [[nodiscard]] Error failure_of(Member& member) const;
  [[nodiscard]] Status stop();
  [[nodiscard]] bool by_hand_too(const RoleSpec& spec) const { return setup_.under == "hand-set" && !spec.no_donation; }

  const Context& context_;
  Setup setup_;
  TempDir dir_;
  std::unique_ptr<Daemon> own_daemon_;  // outlives the members: destroyed last
  const Daemon* daemon_ = nullptr;      // that one, or another's
  SharedMemory shared_;
  Fd gate_read_, gate_write_;
  std::vector<Member> members_;
  std::vector<Child> hogs_;
};

// One of the things that are compared batch by batch: a team whose role 0 runs them.
struct Subject {
  Setup setup;
  std::unique_ptr<Team> team;
  std::vector<double> batches_ms;
};
// A row of each, for what a call costs; its samples are the batches.
[[nodiscard]] std::vector<Row> rows_of_calls(const std::vector<Subject>& subjects);

// The attributes given by hand to those on whom a client with `attr` depends.
[[nodiscard]] SchedAttr by_hand(const SchedAttr& attr);
// The options of `swapctl run` that give a program these; none for those that each program has.
[[nodiscard]] std::vector<std::string> priority_words(const SchedAttr& attr);

}  // namespace swapd::bench
