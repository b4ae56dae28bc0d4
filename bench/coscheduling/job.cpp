#include "coscheduling/job.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <set>

#include "harness/stats.h"
#include "harness/usage.h"

namespace swapd::bench {
namespace {

constexpr std::chrono::milliseconds launcher_cleans_up{5000};

JobReceive receive_of(const std::string& name) {
  if (name == "yield") return receive_yield;
  if (name == "spin-block") return receive_spin_block;
  return name == "block" ? receive_block : receive_spin;
}

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (std::ranges::any_of(line, [](unsigned char letter) { return std::isalpha(letter) != 0; })) return line;
  return {};
}

double thread_cpu_us() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

}  // namespace

Job::Job(Job&& other) noexcept
    : plan_(std::move(other.plan_)),
      memory_(std::move(other.memory_)),
      area_(std::exchange(other.area_, nullptr)),
      dir_(std::move(other.dir_)),
      children_(std::move(other.children_)) {}

Job::~Job() {
  end();
  if (area_ != nullptr) ::munmap(area_, sizeof *area_);
}

Status Job::map_area() {
  memory_.reset(::memfd_create("cosched", MFD_CLOEXEC));
  if (!memory_ || ::ftruncate(memory_.get(), sizeof(JobArea)) != 0) return errno_error("creating shared memory");
  void* where = ::mmap(nullptr, sizeof(JobArea), PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
  if (where == MAP_FAILED) return errno_error("mapping shared memory");
  area_ = static_cast<JobArea*>(where);
  area_->pattern = plan_.pattern == "latency" ? pattern_latency : pattern_barrier;
  area_->receive = receive_of(receive_under(plan_));
  area_->ranks = static_cast<std::uint32_t>(plan_.ranks);
  area_->pinned = plan_.pinned ? 1 : 0;
  area_->cpu_count = static_cast<std::uint32_t>(plan_.cpus.size());
  std::ranges::copy(plan_.cpus, area_->cpus);
  area_->alarm_s = static_cast<std::uint32_t>(plan_.at_most_s);
  area_->rounds = plan_.rounds;
  area_->turns = plan_.turns;
  area_->on_nodes = plan_.on_nodes ? 1 : 0;
  area_->spin_ns = static_cast<std::int64_t>(plan_.spin_us * 1e3);
  return Done{};
}

Result<Job> Job::start(const Context& context, const JobPlan& plan, const std::vector<JobNode>& nodes) {
  Job job(plan);
  if (Status mapped = job.map_area(); !mapped) return mapped.error();
  auto dir = TempDir::create();
  if (!dir) return dir.error();
  job.dir_.emplace(std::move(*dir));
  const JobPlaces places{.self = context.self,
                         .area = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(job.memory_.get()),
                         .temp = job.dir_->path()};
  for (int i = 0; i < job_processes(plan); ++i) {
    const JobNode& node = nodes.at(static_cast<std::size_t>(i) % nodes.size());
    Spawn spawn;
    spawn.network = node.network;
    spawn.cpus = plan.cpus;
    spawn.own_session = plan.split;
    if (plan.program != "own") spawn.errors = job.log();  // a launcher has much to say of ranks that are killed
    if (plan.under == "nice-5") spawn.attr = SchedAttr{.nice = -5};
    if (node.daemon != nullptr)
      spawn.argv = {context.options.swapctl, "--socket", node.daemon->socket(), "run", "--filter", "--"};
    for (std::string& word : job_words(plan, places, i)) spawn.argv.push_back(std::move(word));
    auto child = Child::start(spawn);
    if (!child) return child.error();
    job.children_.push_back(std::move(*child));
  }
  return job;
}

Result<bool> Job::all_are(RankState state, std::chrono::milliseconds at_most) {
  const std::uint32_t seen = __atomic_load_n(&area_->changes.word, __ATOMIC_SEQ_CST);
  const auto look = [&] {
    return std::all_of(area_->rank, area_->rank + area_->ranks, [&](const JobRank& rank) {
      return __atomic_load_n(&rank.state, __ATOMIC_SEQ_CST) >= static_cast<std::uint32_t>(state);
    });
  };
  bool all = look();
  if (!all) {
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(at_most).count();
    const timespec pause{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
    job_futex(&area_->changes.word, FUTEX_WAIT, seen, &pause);
    all = look();
  }
  for (const JobRank* rank = area_->rank; rank != area_->rank + area_->ranks; ++rank)
    if (__atomic_load_n(&rank->state, __ATOMIC_SEQ_CST) == rank_failed) return Error(ECHILD, "a rank has failed");
  if (all) return true;
  for (Child& child : children_)
    if (const auto ended = child.wait(std::chrono::milliseconds(0)); ended)
      return Error(ECHILD, plan_.program + " has ended early (" + wait_text(*ended) + ") " + first_line(log()));
  if (interrupted()) return Error(EINTR, "interrupted");
  return false;
}

Status Job::await_ready(std::chrono::seconds at_most) {
  const auto until = std::chrono::steady_clock::now() + at_most;
  while (std::chrono::steady_clock::now() < until) {
    const auto all = all_are(rank_ready, std::chrono::milliseconds(50));
    if (!all) return all.error();
    if (*all) return Done{};
  }
  return Error(ETIMEDOUT, "starting " + plan_.program);
}

void Job::let_go() { job_set(&area_->go, go_run); }

Result<bool> Job::await_done(std::chrono::milliseconds at_most) { return all_are(rank_done, at_most); }

bool Job::done() const {
  return std::all_of(area_->rank, area_->rank + area_->ranks,
                     [](const JobRank& rank) { return __atomic_load_n(&rank.state, __ATOMIC_SEQ_CST) == rank_done; });
}

std::uint64_t Job::rounds() const {
  std::uint64_t fewest = UINT64_MAX;
  for (std::uint32_t i = 0; i < area_->ranks; ++i)
    fewest = std::min(fewest, __atomic_load_n(&area_->rank[i].rounds, __ATOMIC_RELAXED));
  return fewest;
}

std::int64_t Job::ended_ns() const {
  std::int64_t last = 0;
  for (std::uint32_t i = 0; i < area_->ranks; ++i) last = std::max(last, area_->rank[i].ended_ns);
  return last;
}

std::vector<pid_t> Job::pids() const {
  std::set<pid_t> pids;  // a process may have several ranks
  for (std::uint32_t i = 0; area_ != nullptr && i < area_->ranks; ++i)
    if (area_->rank[i].pid > 0) pids.insert(area_->rank[i].pid);
  return {pids.begin(), pids.end()};
}

double Job::cpu_s() const {
  double sum = 0;
  for (const pid_t pid : pids()) sum += process_cpu_s(pid);
  return sum;
}

int Job::sessions_apart() const {
  int shared_by_session = 0;
  std::ifstream("/proc/sys/kernel/sched_autogroup_enabled") >> shared_by_session;
  if (shared_by_session != 1 || plan_.split) return 0;
  std::set<pid_t> sessions;
  for (const pid_t pid : pids())
    if (const pid_t session = ::getsid(pid); session > 0) sessions.insert(session);
  return sessions.contains(::getsid(0)) ? 0 : static_cast<int>(sessions.size());
}

void Job::signal(int number) const {
  for (const pid_t pid : pids()) ::kill(pid, number);
}

void Job::end() {
  if (area_ == nullptr || children_.empty()) return;
  if (plan_.program == "own") return end_all(children_);
  end_launcher();
}

// Ranks that are done end by themselves; of those that are not, one that is killed lets the launcher end all.
void Job::end_launcher() {
  const bool in_order = done();
  job_set(&area_->go, go_end);
  if (!in_order) signal(SIGKILL);
  Child& launcher = children_.front();
  if (!launcher.wait(launcher_cleans_up)) {
    launcher.signal(SIGTERM);
    (void)launcher.wait(launcher_cleans_up);
    signal(SIGKILL);
  }
  end_all(children_);
}

double calibrate_job_work() {
  constexpr std::uint64_t turns = 4'000'000;  // a millisecond or two
  std::vector<double> rates;
  job_work(20 * turns);
  for (int i = 0; i < 21; ++i) {
    const double before = thread_cpu_us();
    job_work(turns);
    rates.push_back(static_cast<double>(turns) / (thread_cpu_us() - before));
  }
  return median(std::move(rates));
}

}  // namespace swapd::bench
