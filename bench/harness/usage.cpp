#include "harness/usage.h"

#include <time.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "sys/procfs/procfs.h"

namespace swapd::bench {

namespace {

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The number behind a label of a `status` file.
std::uint64_t labelled(const std::string& text, const std::string& label) {
  const auto at = text.find("\n" + label + ":");
  if (at == std::string::npos) return 0;
  std::istringstream rest(text.substr(at + label.size() + 2));
  std::uint64_t number = 0;
  rest >> number;
  return number;
}

std::string task(pid_t pid, pid_t tid, const char* file) {
  return "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/" + file;
}

// proc_pid_stat(5): fields 16 and 17, cutime and cstime.
double reaped_cpu_s(pid_t pid) {
  const std::string text = text_of("/proc/" + std::to_string(pid) + "/stat");
  const auto bracket = text.rfind(')');  // the name may hold anything
  if (bracket == std::string::npos) return 0;
  std::istringstream rest(text.substr(bracket + 1));
  std::string skipped;
  for (int field = 3; field < 16; ++field) rest >> skipped;
  double user = 0, system = 0;
  rest >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

double process_cpu_s(pid_t pid) {
  clockid_t clock = 0;
  timespec used{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

double tree_cpu_s(pid_t pid) {
  double sum = process_cpu_s(pid) + reaped_cpu_s(pid);
  for (const pid_t child : sys::Procfs().children(pid).value_or({})) sum += tree_cpu_s(child);
  return sum;
}

double thread_cpu_s(pid_t pid, const std::string& comm) {
  double sum = 0;
  for (const pid_t tid : sys::Procfs().threads(pid).value_or({})) {
    if (text_of(task(pid, tid, "comm")) != comm + "\n") continue;
    sum += std::chrono::duration<double>(sys::Procfs().cpu_time(tid).value_or(Duration::zero())).count();
  }
  return sum;
}

std::uint64_t voluntary_switches(pid_t pid) {
  std::uint64_t sum = 0;
  for (const pid_t tid : sys::Procfs().threads(pid).value_or({})) {
    sum += labelled(text_of(task(pid, tid, "status")), "voluntary_ctxt_switches");
  }
  return sum;
}

std::uint64_t rss_bytes(pid_t pid) {
  return labelled(text_of("/proc/" + std::to_string(pid) + "/status"), "VmRSS") * 1024;
}

}  // namespace swapd::bench
