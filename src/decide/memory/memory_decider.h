// Memory goes to those that matter: while the machine, or a control group within its limit, thrashes, the jobs that
// matter least stand still and leave memory as a whole (PutAway), and come back in the order of their ranks
// [Peachey84 §4.2, §4.3]. Pure.
//
// A job is a process, or those of a session or scope (the caller says which: ProcessMemory::job); where no set of jobs
// frees enough, each process of one with several is a job for itself, as the compilers of one `make -j` are. How much
// it matters is the rank of its best thread, as that counts where it waits: what has a level of a person's is before
// what has none (Ranked). No job leaves that is waited for by a thread that matters more than the least, or that the
// caller says is needed; one that such a thread begins to wait for comes back at once, as does one to which something
// has come (MemoryEvent), and where there is no room for it others leave at once. Each change has some windows to show
// what it does before the next. Equals take turns, so that all get on.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/recycled.h"
#include "base/words.h"
#include "decide/decider.h"
#include "decide/memory/thrashing.h"
#include "decide/memory/victims.h"

namespace swapd::decide {

struct MemoryConfig {
  bool on = false;
  std::vector<bool> stay{};  // the programs of class 0, 1 … never leave
  ThrashingConfig thrashing;
  Duration stays = std::chrono::seconds(5);          // in memory at least, once it has come back
  Duration quantum = std::chrono::seconds(15);       // away; then an equal takes its turn
  Duration settles = std::chrono::seconds(2);        // after a change nothing is decided for so long
  Duration unknown_after = std::chrono::seconds(5);  // without a word of a process
};

class MemoryDecider final : public Decider {
 public:
  static constexpr std::string_view decider_name = "memory";
  explicit MemoryDecider(MemoryConfig config = {}) : config_(config) {}

  [[nodiscard]] std::string_view name() const override { return decider_name; }
  void after(const Event& event, const model::Model& model) override;
  void on(const Input& input) override;
  void forget(ThreadId thread) override;
  void decide(const model::Model& model, const Turn& turn, Plan& plan) override;
  void save(StateWriter& out) const override;
  void restore(StateReader& in) override;

  // For people.
  enum class Why : std::uint8_t {
    none,
    no_set_frees_enough,  // it thrashes, and putting jobs away would not help
  };
  struct GroupView {
    std::string group;
    bool thrashes = false;
    double lost = 0;
    Why stuck = Why::none;
  };
  struct AwayView {
    pid_t tgid = 0;
    std::uint64_t job = 0;
    std::string group;
    Time since{};
  };
  [[nodiscard]] std::vector<GroupView> groups() const;
  [[nodiscard]] std::vector<AwayView> away() const;

 private:
  struct Process {
    ProcessMemory seen;
    Time stays_until{};  // it cannot be put away, or a person wants it
    template <typename Self, typename Archive>
    static void state(Self& self, Archive& archive) {
      archive(self.seen, self.stays_until);
    }
  };
  struct Away {
    std::string group;
    int rank = 0;
    Time since{};
    template <typename Self, typename Archive>
    static void state(Self& self, Archive& archive) {
      archive(self.group, self.rank, self.since);
    }
  };
  struct Group {
    Thrashing thrashing;
    std::int64_t room = 0, swap_room = 0;
    Time seen_at{}, changed_at = never;
    Why stuck = Why::none;
    bool fresh = false;  // a window has come that was not looked at
    void changes(Time now) {
      changed_at = now;
      thrashing.begin_anew();
    }
    template <typename Self, typename Archive>
    static void state(Self& self, Archive& archive) {
      archive(self.thrashing, self.room, self.swap_room, self.seen_at, self.changed_at, self.stuck, self.fresh);
    }
  };
  struct Thread {
    pid_t tgid = 0;
    SchedAttr base;
    ClassId class_id = 0;
    std::optional<SchedAttr> counts_as;
    [[nodiscard]] int rank() const { return swapd::rank(counts_as ? *counts_as : base); }
    template <typename Self, typename Archive>
    static void state(Self& self, Archive& archive) {
      archive(self.tgid, self.base, self.class_id, self.counts_as);
    }
  };
  using JobId = MemoryJob::Id;
  [[nodiscard]] JobId job_of(const ProcessMemory& seen) const;
  using Jobs = std::map<JobId, MemoryJob>;

  void take(const MemoryFared& fared);
  void take(const MemoryEvent& event);
  void forget_old(Time now);
  [[nodiscard]] std::vector<pid_t> waited_for(const model::Model& model, Time now) const;
  [[nodiscard]] Jobs jobs_of(const std::string& group, std::span<const pid_t> wanted, const model::Model& model,
                             Time now) const;
  [[nodiscard]] std::vector<MemoryJob> there(const Jobs& jobs) const;
  void put_away(const std::string& name, Group& group, Jobs jobs, const std::function<Jobs()>& again, Time now);
  [[nodiscard]] bool split(const std::string& name, Time now);
  void bring_back(const std::string& name, Group& group, const Jobs& jobs, Time now);
  void leaves(const std::string& name, const MemoryJob& job, Time now);
  void comes_back(JobId job, Time now);
  void recall(std::span<const pid_t> pids, Time now, std::vector<std::string>& fuller);
  void demand(Plan& plan) const;

  MemoryConfig config_;
  std::map<std::string, Group> groups_;
  Map<pid_t, Process> processes_;
  Map<ThreadId, Thread> threads_;
  Map<JobId, Away> away_;
  Map<JobId, Time> came_back_;  // when
  Map<JobId, Time> split_;      // since when its processes are jobs
  std::vector<pid_t> events_;   // processes to which something has come
  bool stays_changed_ = false;  // of some process
  bool waits_changed_ = false;  // a thread may wait for a process that is away
  bool changed_ = false;        // what is demanded
};

inline constexpr auto stuck_words = words<MemoryDecider::Why>(
    {{"none", MemoryDecider::Why::none}, {"no-set-frees-enough", MemoryDecider::Why::no_set_frees_enough}});

}  // namespace swapd::decide
