#include "cli/words.h"

#include <span>
#include <utility>

#include "base/thread_state.h"
#include "cli/failure.h"
#include "cli/render.h"

namespace swapd::cli {
namespace {

using Entry = std::pair<std::string_view, std::string_view>;

std::string look_up(std::span<const Entry> entries, std::string_view word) {
  for (const auto& [key, phrase] : entries)
    if (key == word) return std::string(phrase);
  return printable(word);
}

constexpr Entry states[] = {
    {word(ThreadState::running), "has been running for {}"},
    {word(ThreadState::queued), "has been ready, without a CPU, for {}"},
    {word(ThreadState::blocked), "has been blocked for {}"},
    {word(ThreadState::virtual_runnable), "has been blocked for {}, and whoever can end that is able to run"},
    {word(ThreadState::delayed), "has been delayed by the limits of its class for {}"},
    {word(ThreadState::stopped), "has been stopped for {}"},
    {word(ThreadState::frozen), "has been frozen by its cgroup for {}"},
};

constexpr Entry evidences[] = {
    {"woke", "ended such a wait before"},
    {"accessed", "used it before"},
    {"sent-to", "was woken by the waiter's last message"},
    {"kin", "ended such waits of the waiter's siblings"},
    {"relayed", "was passed the waiter's message"},
    {"owner", "holds the lock"},
    {"holder", "has the other end open"},
    {"child", "is the child waited for"},
    {"guess", "could be meant, and has no CPU (a guess: a nice value is lent at most)"},
    {"relay", "passes messages on, and is not managed: it is looked at, and never changed"},
    {"unenrolled", "not managed by swapd, so it cannot be helped"},
};

constexpr Entry reasons[] = {
    {"autogroup", "a nice value means nothing to threads of other sessions (autogroup)"},
    {"cgroup-weight", "a nice value means nothing outside its own cgroup (cgroup-weight)"},
    {"cgroup-idle", "its cgroup is idle (cpu.idle), so that any other goes first (cgroup-idle)"},
    {"cgroup-quota", "its cgroup has used up its CPU quota (cgroup-quota)"},
    {"rt-group", "its cgroup has no real-time budget (rt-group)"},
    {"rt-refused", "the kernel gives it no real-time priority (rt-refused)"},
    {"rttime", "its process has a limit on real-time CPU time, past which the kernel ends it (rttime)"},
    {"no-progress", "it has not brought the waiter further, so little or nothing is lent for now (no-progress)"},
    {"affinity", "it may not run on a CPU where that would help (affinity)"},
    {"quota", "its user's waiters have had all the lent CPU time that the policy allows one user for now (quota)"},
    {"ceiling", "it has had all the lent CPU time that the policy allows for now (ceiling)"},
    {"policy", "the policy forbids it (policy)"},
    {"stopped", "the thread that could end the wait has been stopped (stopped)"},
    {"frozen", "the thread that could end the wait has been frozen by its cgroup (frozen)"},
    {"unmanaged", "the thread that could end the wait is not managed by swapd (unmanaged)"},
};

}  // namespace

std::string priority(const Json& attributes) {
  const std::string policy = attributes.value("policy", "");
  const std::string nice = std::to_string(whole(attributes, "nice"));
  if (policy == "fifo" || policy == "rr") return policy + " " + std::to_string(whole(attributes, "rt_priority"));
  if (policy == "other") return "nice " + nice;
  if (policy == "batch") return "batch nice " + nice;
  return policy.empty() ? "-" : printable(policy);
}

std::string state_phrase(std::string_view word, const std::string& since) {
  std::string phrase = look_up(states, word);
  if (since.empty()) {
    for (const std::string_view time : {", for {}", " for {}"})
      if (const std::size_t at = phrase.find(time); at != std::string::npos) phrase.erase(at, time.size());
    return phrase;
  }
  const std::size_t gap = phrase.find("{}");
  return gap == std::string::npos ? phrase + " for " + since : phrase.replace(gap, 2, since);
}
std::string time_in_state(const Json& thread) {
  return thread.contains("since_ms") && thread.value("since_known", true) ? duration(thread.value("since_ms", 0.0))
                                                                          : "";
}
std::string evidence_phrase(std::string_view word) { return look_up(evidences, word); }
std::string reason_phrase(std::string_view word) { return look_up(reasons, word); }

long long whole(const Json& from, const char* key) {
  constexpr double most = 1e15;
  const double number = from.value(key, 0.0);
  return number > -most && number < most ? static_cast<long long>(number) : 0;
}

std::string missing_piece(const Json& piece) {
  const auto part = [&](const char* key) { return printable(piece.value(key, "")); };
  return part("what") + ": " + part("why") + "; " + part("instead");
}

}  // namespace swapd::cli
