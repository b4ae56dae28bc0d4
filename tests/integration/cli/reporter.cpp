// Writes everything that a program can find out about how it was started into the file named by its first argument.
// Two runs, one under `swapctl run` and one without, must give the same text.
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

namespace {

void status_lines(std::FILE* out) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    for (const char* key : {"Name:", "PPid:", "Threads:", "SigPnd:", "ShdPnd:", "SigBlk:", "SigIgn:", "SigCgt:",
                            "CapEff:", "CapInh:", "CapBnd:", "NoNewPrivs:", "Cpus_allowed:", "Uid:", "Gid:"})
      if (line.rfind(key, 0) == 0) std::fprintf(out, "%s\n", line.c_str());
}

void descriptors(std::FILE* out, int own) {
  std::map<int, std::string> found;
  DIR* directory = ::opendir("/proc/self/fd");
  for (const dirent* entry = ::readdir(directory); entry != nullptr; entry = ::readdir(directory)) {
    const int fd = std::atoi(entry->d_name);
    if (entry->d_name[0] == '.' || fd == own || fd == ::dirfd(directory)) continue;
    char target[4096] = {};
    const std::string link = "/proc/self/fd/" + std::string(entry->d_name);
    if (::readlink(link.c_str(), target, sizeof target - 1) < 0) continue;
    found[fd] = std::string(target) + " flags " + std::to_string(::fcntl(fd, F_GETFD)) + " " +
                std::to_string(::fcntl(fd, F_GETFL));
  }
  ::closedir(directory);
  for (const auto& [fd, text] : found) std::fprintf(out, "fd %d %s\n", fd, text.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  // Far from the numbers that are reported.
  const int opened = ::open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  const int own = ::fcntl(opened, F_DUPFD_CLOEXEC, 500);
  ::close(opened);
  std::FILE* out = ::fdopen(own, "w");
  if (out == nullptr) return 3;
  for (int i = 0; i < argc; ++i) std::fprintf(out, "argument %s\n", argv[i]);
  for (char** entry = environ; *entry != nullptr; ++entry) std::fprintf(out, "environment %s\n", *entry);
  char directory[4096] = {};
  std::fprintf(out, "directory %s\n", ::getcwd(directory, sizeof directory));
  std::fprintf(out, "session %d group %d\n", ::getsid(0), ::getpgid(0));
  const mode_t mask = ::umask(0);
  std::fprintf(out, "umask %o\n", mask);
  int subreaper = 0;
  ::prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
  std::fprintf(out, "subreaper %d\n", subreaper);
  sched_param param{};
  ::sched_getparam(0, &param);
  std::fprintf(out, "policy %d %d nice %d\n", ::sched_getscheduler(0), param.sched_priority,
               ::getpriority(PRIO_PROCESS, 0));
  for (const auto resource : {RLIMIT_NOFILE, RLIMIT_CORE, RLIMIT_MEMLOCK, RLIMIT_RTPRIO}) {
    rlimit limit{};
    ::getrlimit(resource, &limit);
    std::fprintf(out, "limit %lu %lu\n", limit.rlim_cur, limit.rlim_max);
  }
  status_lines(out);
  descriptors(out, own);
  std::fprintf(out, "children %s\n", ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD ? "none" : "some");
  std::fprintf(out, "pid %d\n", ::getpid());
  return std::fclose(out) == 0 ? 42 : 4;
}
