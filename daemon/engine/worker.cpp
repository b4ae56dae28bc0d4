#include "engine/worker.h"

#include <algorithm>
#include <unordered_set>

#include "sys/process/self_process.h"

namespace swapd::daemon {

namespace {
constexpr std::size_t max_questions = 1024;
constexpr int rest = 19;            // times what it has worked, before it is asked again what it was asked before …
constexpr int rest_from_again = 9;  // … and times what that alone took, where it has other work all the time

bool is_scan_again(const Question& question) {
  const auto* scan = std::get_if<ScanQuestion>(&question);
  return scan != nullptr && scan->again;
}
}  // namespace

Worker::Worker(const Kernel& kernel, std::vector<actuate::DiskGroups> disk_groups, observe::Resolver& resolver,
               std::function<void()> notify)
    : kernel_(kernel),
      resolver_(resolver),
      competitors_(kernel.procfs, kernel.groups, kernel.scheduler, std::move(disk_groups)),
      notify_(std::move(notify)) {}

Worker::~Worker() { stop(); }

void Worker::start() {
  thread_ = std::thread([this] { run(); });
}

void Worker::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.release();
  if (thread_.joinable()) thread_.join();
}

bool Worker::replaces_older(const Question& question) {
  const auto* wait = std::get_if<observe::WaitQuestion>(&question);
  if (wait == nullptr) return false;
  for (Question& open : questions_) {
    auto* older = std::get_if<observe::WaitQuestion>(&open);
    if (older == nullptr || older->thread != wait->thread) continue;
    *older = *wait;
    return true;
  }
  return false;
}

void Worker::ask(Question question) {
  {
    const std::lock_guard lock(mutex_);
    if (replaces_older(question)) return;
    if (questions_.size() >= max_questions) {
      const auto same =
          std::ranges::find_if(questions_, [&](const Question& q) { return q.index() == question.index(); });
      if (same == questions_.end()) return;
      if (is_scan_again(*same)) --scans_again_;
      questions_.erase(same);
    }
    if (is_scan_again(question)) ++scans_again_;
    questions_.push_back(std::move(question));
    rested_at_.store(Time::max(), std::memory_order_relaxed);
  }
  wake_.release();
}

Duration Worker::cpu_time() const {
  const pid_t tid = tid_.load(std::memory_order_relaxed);
  return tid == 0 ? Duration::zero() : sys::own_thread_cpu_time(tid);
}

bool Worker::rested(Time now) const { return now >= rested_at_.load(std::memory_order_relaxed); }

bool Worker::rested_from_scans(Time now) const {
  return scans_again_.load(std::memory_order_relaxed) == 0 &&
         now >= rested_from_scans_at_.load(std::memory_order_relaxed);
}

void Worker::rest_from_scans(Duration used) {
  const Time from = std::max<Time>(kernel_.clock.now(), rested_from_scans_at_.load());
  rested_from_scans_at_.store(from + rest_from_again * used);
  --scans_again_;
}

std::vector<Answer> Worker::take() {
  std::vector<Answer> taken;
  const std::lock_guard lock(mutex_);
  taken.swap(answers_);
  return taken;
}

void Worker::run() {
  sys::name_thread("swapd-worker");
  tid_.store(sys::own_tid(), std::memory_order_relaxed);
  sys::go_before_ordinary_threads();
  Duration used = sys::own_cpu_time();  // when the last rest began
  Duration before = used;               // the last question
  Time rests_until{};
  for (;;) {
    Question question;
    {
      wake_.acquire();
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      if (questions_.empty()) continue;  // one was dropped
      question = std::move(questions_.front());
      questions_.pop_front();
    }
    Answer found = answer(question);
    bool first = false;
    {
      const std::lock_guard lock(mutex_);
      first = answers_.empty();
      answers_.push_back(std::move(found));
      const Duration now_used = sys::own_cpu_time();
      if (is_scan_again(question)) rest_from_scans(now_used - before);
      before = now_used;
      if (questions_.empty()) {
        // Little work does not make up for much work before it.
        rests_until = std::max<Time>(rests_until, kernel_.clock.now()) + rest * (now_used - used);
        rested_at_.store(rests_until, std::memory_order_relaxed);
        used = now_used;
      }
    }
    if (first) notify_();
  }
}

Answer Worker::answer(const Question& question) {
  if (const auto* wait = std::get_if<observe::WaitQuestion>(&question))
    return observe::WaitAnswer{*wait, resolver_.full(wait->site)};
  if (const auto* access = std::get_if<observe::AccessQuestion>(&question))
    return observe::AccessAnswer{*access, resolver_.full_access(access->site)};
  if (const auto* scan = std::get_if<ScanQuestion>(&question))
    return ScanAnswer{*scan, resolver_.scan(scan->waiter.tid, scan->resources, scan->members, scan->asked)};
  if (const auto* ask = std::get_if<RosterQuestion>(&question))
    return list_threads(kernel_.procfs, kernel_.scheduler, *ask);
  if (const auto* weights = std::get_if<WeightsQuestion>(&question)) return read_weights(kernel_.groups, *weights);
  return competitors_.look(std::get<CompetitorsQuestion>(question).boosted);
}

RosterAnswer list_threads(const sys::Procfs& procfs, const sys::Scheduler& scheduler, const RosterQuestion& question) {
  RosterAnswer answer{.threads = {}, .question = question};
  std::unordered_set<pid_t> seen;
  std::deque<std::pair<pid_t, pid_t>> open;  // process, the member it descends from
  for (const pid_t pid : question.members) open.emplace_back(pid, 0);
  while (!open.empty()) {
    const auto [pid, parent] = open.front();
    open.pop_front();
    if (!seen.insert(pid).second) continue;
    const auto tids = procfs.threads(pid);
    const auto uid = procfs.uid(pid);
    const auto leader = procfs.thread_id(pid);
    if (!tids || !uid || !leader) continue;
    for (const pid_t tid : *tids) {
      const auto stat = procfs.stat(tid);
      const auto attr = scheduler.get(tid);
      if (stat && stat->alive() && attr)
        answer.threads.push_back({{tid, stat->start_time}, pid, parent, *uid, *attr, leader->start_time});
    }
    if (!question.descendants) continue;
    if (const auto children = procfs.children(pid))
      for (const pid_t child : *children) open.emplace_back(child, parent == 0 ? pid : parent);
  }
  return answer;
}

}  // namespace swapd::daemon
