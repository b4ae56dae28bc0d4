// A bus::Backend with a small world of its own: a client at FIFO 50 that waits for a server, which waits for a lock
// that a nice-19 job holds. What it was asked to do is kept for the test to look at; what it answers can be changed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bus/backend.h"

namespace swapd::fakes {

class FakeBackend : public bus::Backend {
 public:
  static constexpr pid_t client_pid = 100, server_pid = 200, server_tid = 203, job_pid = 300, unknown_pid = 999;

  static SchedAttr fifo(std::uint8_t priority) {
    SchedAttr attr;
    attr.policy = SchedPolicy::fifo;
    attr.rt_priority = priority;
    return attr;
  }
  static SchedAttr nice(std::int8_t value) {
    SchedAttr attr;
    attr.nice = value;
    return attr;
  }
  static Resource socket() { return {ResourceKind::socket, {12345}}; }
  static Resource lock() { return {ResourceKind::flock, {0xfe00, 77, 1}}; }

  std::string version() const override { return "0.1.0"; }
  bus::StatusView status() override {
    ++status_calls;
    bus::StatusView s;
    s.version = "0.1.0";
    s.observer = "seccomp";
    s.observer_reason = "bpf is not built in";
    s.managed_threads = 4;
    s.managed_processes = 3;
    s.listeners = 1;
    s.donations_active = 1;
    s.donations_total = 17;
    s.notifications_total = 4711;
    s.rivals = {"ananicy-cpp (pid 7) also sets priorities"};
    s.warnings = {"no CAP_SYS_NICE: real-time requesters are not helped"};
    s.missing = {{"traffic (netio)", "prog 'on_send': refused", "calls are charged what they ask for"}};
    s.watch_method = "perf";
    s.cpu = {.engine_s = 1.25,
             .worker_s = 0.5,
             .receivers_s = 0.125,
             .jobs_s = 0.0625,
             .memory_s = 0.03125,
             .control_s = 0.25,
             .total_s = 2.21875,
             .guard_s = 0.01};
    s.unheard_threads = 150;
    s.budget = {.share = 0.05, .share_now = 0.02, .used = 0.0125, .wait_ms = 2.5, .patience_ms = 4};
    s.paused = paused;
    s.pid = 4242;
    return s;
  }

  bus::BriefView brief() override {
    const bus::StatusView s = status();
    return {s.observer, s.paused, s.managed_threads, s.managed_processes, s.donations_active, !away.empty(), away};
  }

  std::vector<bus::ThreadView> threads() override { return {client(), server(), job()}; }

  Result<std::vector<bus::ThreadView>> why(pid_t pid) override {
    if (why_error) return *why_error;
    for (bus::ThreadView& t : threads_list())
      if (pid == t.pid || pid == t.tid) return std::vector{t};
    return Error(ENOENT, "no managed process or thread has the id " + std::to_string(pid));
  }

  bus::GraphView graph() override {
    return {{{"t100", "thread", comm + " 100"}, {"r1", "resource", "socket:12345"}, {"t203", "thread", "server 203"}},
            {{"t100", "r1", "requests", 0}, {"t203", "r1", "provides", 21}}};
  }

  bus::WorldView world() override {
    ++world_calls;
    return {world_threads ? *world_threads : threads(),
            {{socket(), {{server_pid, server_tid, 21}}}, {lock(), {{job_pid, job_pid, 20}}}}};
  }

  Result<pid_t> pid_of(int) const override { return described; }

  Result<bus::LaunchAnswer> launch(bus::LaunchRequest request) override {
    if (request.class_name == "nosuch") return Error(EINVAL, "there is no class nosuch");
    launched.push_back(std::move(request));
    if (on_launch) return on_launch(launched.back());
    return bus::LaunchAnswer{};
  }

  std::vector<bus::SettingView> policy() override {
    return {{"model", "confidence", "20", "built-in"},
            {"donation", "strict", "true", "/etc/swapd/swapd.toml:3"},
            {"donation", "ceiling", "90", "built-in"}};
  }

  void enroll(const bus::EnrollRequest& request, std::function<void(const Status&)> done) override {
    if (request.pid == unknown_pid) return done(Error(EOPNOTSUPP, "start the program with swapctl run"));
    enrolled.push_back(request);
    if (later)
      unanswered.push_back(std::move(done));
    else
      done(Done{});
  }

  Status release(pid_t pid, const bus::Caller& caller) override {
    if (pid == unknown_pid) return Error(ESRCH, "no managed process has the id 999");
    released.emplace_back(pid, caller.uid());
    return Done{};
  }

  Status thaw(pid_t pid, const bus::Caller& caller) override {
    if (pid == unknown_pid) return Error(ESRCH, "no managed process has the id 999");
    thawed.emplace_back(pid, caller.uid());
    return Done{};
  }

  Status pause(bool on, const bus::Caller&) override {
    paused = on;
    return Done{};
  }

  Status restart(const bus::Caller&) override {
    ++restarts;
    return Done{};
  }

  Status set(pid_t pid, const AskedPriority& base, const bus::Caller& caller) override {
    if (pid == unknown_pid) return Error(ESRCH, "no managed process or thread has the id 999");
    sets.push_back({pid, base.attr, caller.uid(), base.nice_alone});
    return Done{};
  }

  std::vector<bus::ClassView> classes() override {
    bus::ClassView one{.name = "backup", .shaped = true, .limited = true, .of_policy = false};
    one.limits = {{"/var", "both", 10 << 20}};
    one.devices = {
        {.device = "vda", .read_bytes = 1000, .calls = 3, .delayed_calls = 1, .delayed_s = 0.5, .tokens = -7}};
    return {{.name = "default"}, one};
  }
  Status create_class(const std::string& name, const std::vector<bus::LimitChange>& changes,
                      const bus::Caller& caller) override {
    if (!caller.may(bus::Right::set_limits)) return Error(EACCES, "only root may make classes of swapd");
    if (name == "backup") return Error(EEXIST, "class 'backup' exists already");
    class_changes = changes;
    return Done{};
  }
  Status set_class(const std::string& name, const std::vector<bus::LimitChange>& changes,
                   const bus::Caller& caller) override {
    if (!caller.may(bus::Right::set_limits)) return Error(EACCES, "only root may change classes of swapd");
    if (name != "backup") return Error(ENOENT, "no class '" + name + "'");
    class_changes = changes;
    return Done{};
  }
  Status remove_class(const std::string& name, const bus::Caller&) override {
    return name == "backup" ? Status(Done{}) : Error(ENOENT, "no class '" + name + "'");
  }
  std::vector<bus::LimitChange> class_changes;

  void follow_events(bus::EventDetail new_detail, std::function<void(const bus::EventView&)> new_sink) override {
    ++follow_calls;
    detail = new_detail;
    sink = std::move(new_sink);
  }

  Status record(std::function<bool(std::string_view)> new_recorder) override {
    if (recorder) return Error(EBUSY, "a recording is under way");
    recorder = std::move(new_recorder);
    return Done{};
  }
  void refused(std::string_view, pid_t, const bus::Caller&, const Error&) override {}
  void end_recording() override {
    if (recorder) (void)recorder("{\"type\":\"end\",\"events\":3,\"decisions\":2,\"lost\":0}\n");
    recorder = {};
  }

  static bus::EventView donation_begun() {
    bus::EventView event;
    event.time = 1700000000.25;
    event.type = "donation-begun";
    event.pid = server_pid;
    event.tid = server_tid;
    event.comm = "server";
    event.fields = {{"resource", "socket:12345"}, {"policy", "fifo"}};
    event.numbers = {{"rt_priority", 49}, {"by", 100}};
    return event;
  }

  struct SetCall {
    pid_t pid;
    SchedAttr base;
    std::uint32_t uid;
    bool nice_alone = false;
  };
  std::string comm = "client";  // of the waiting client: the world's comm is whatever a program calls itself
  std::optional<Error> why_error;
  std::function<Result<bus::LaunchAnswer>(bus::LaunchRequest&)> on_launch;
  std::vector<bus::LaunchRequest> launched;
  std::vector<std::pair<pid_t, std::uint32_t>> released, thawed;
  std::vector<SetCall> sets;
  std::vector<bus::EnrollRequest> enrolled;
  int restarts = 0;
  bool paused = false;
  std::vector<pid_t> away;  // for want of memory
  bool later = false;       // who enrolls is answered later
  std::vector<std::function<void(const Status&)>> unanswered;
  std::function<void(const bus::EventView&)> sink;
  std::function<bool(std::string_view)> recorder;
  bus::EventDetail detail = bus::EventDetail::none;
  int follow_calls = 0;
  int status_calls = 0;
  int world_calls = 0;
  pid_t described = 4321;  // of every pidfd
  std::optional<std::vector<bus::ThreadView>> world_threads;

 private:
  bus::ThreadView client() const {
    bus::ThreadView t;
    t.pid = t.tid = client_pid;
    t.comm = comm;
    t.class_name = "interactive";
    t.state = ThreadState::virtual_runnable;
    t.base = t.effective = fifo(50);
    t.since_ms = 12.5;
    t.call = "recvfrom";
    const bus::ProviderNode holder{job_pid, job_pid, "job", 20, true, "owner", {}};
    const bus::ProviderNode provider{server_pid, server_tid, "server",     21,
                                     true,       "woke",     std::nullopt, {{lock(), "flock", {holder}}}};
    const bus::ProviderNode stranger{400, 400, "stranger", 0, false, "unenrolled", {}};
    t.waiting_for = {{socket(), "recvfrom", {provider, stranger}}};
    t.has_donation = true;
    t.donation_effective = true;
    t.donation_reason = "none";
    return t;
  }
  static bus::ThreadView server() {
    bus::ThreadView t;
    t.pid = server_pid;
    t.tid = server_tid;
    t.comm = "server";
    t.state = ThreadState::virtual_runnable;
    t.base = nice(0);
    t.effective = fifo(49);
    t.since_ms = 2500;
    t.call = "flock";
    t.waiting_for = {{lock(), "flock", {{job_pid, job_pid, "job", 20, true, "owner", {}}}}};
    t.donated_by = {client_pid};
    return t;
  }
  static bus::ThreadView job() {
    bus::ThreadView t;
    t.pid = t.tid = job_pid;
    t.comm = "job";
    t.class_name = "batch";
    t.state = ThreadState::running;
    t.base = nice(19);
    t.effective = nice(19);
    t.donated_by = {client_pid};
    t.has_donation = true;
    t.donation_reason = "autogroup";
    return t;
  }
  std::vector<bus::ThreadView>& threads_list() {
    list_ = threads();
    return list_;
  }
  std::vector<bus::ThreadView> list_;
};

}  // namespace swapd::fakes
