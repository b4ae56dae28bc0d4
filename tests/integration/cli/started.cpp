#include "started.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/fd.h"
#include "sys/process/pidfd.h"

namespace swapd::cli {

Started::Started(std::vector<std::string> arguments, std::string directory, const std::function<void()>& prepare)
    : directory_(std::move(directory)) {
  static int count = 0;
  number_ = count++;
  const auto open = [&](const char* name) {
    return Fd(::open((directory_ + "/" + name + std::to_string(number_)).c_str(),
                     O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  };
  const Fd out = open("out");
  const Fd err = open("err");
  std::vector<char*> words;
  for (std::string& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(out.get(), 1);
    ::dup2(err.get(), 2);
    if (prepare) prepare();
    ::execv(words[0], words.data());
    ::_exit(99);
  }
}

Started::~Started() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

int Started::wait() {
  const Result<Fd> self = sys::open_pidfd(pid_);
  if (!self) return -1000;
  pollfd ended{self->get(), POLLIN, 0};
  if (::poll(&ended, 1, 30'000) != 1) return -1000;
  int state = 0;
  ::waitpid(std::exchange(pid_, -1), &state, 0);
  return WIFEXITED(state) ? WEXITSTATUS(state) : -WTERMSIG(state);
}

std::string Started::out() const { return content(directory_ + "/out" + std::to_string(number_)); }
std::string Started::err() const { return content(directory_ + "/err" + std::to_string(number_)); }

std::string content(const std::string& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TemporaryDirectory::TemporaryDirectory() {
  path_ = (std::filesystem::temp_directory_path() / "swapd-test-XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr) std::abort();
  ::chmod(path_.c_str(), 0777);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryDirectory::for_all(const std::string& program) const {
  std::filesystem::path copy = std::filesystem::path(path_) / std::filesystem::path(program).filename();
  std::filesystem::copy_file(program, copy, std::filesystem::copy_options::skip_existing);
  ::chmod(copy.c_str(), 0755);
  return copy;
}

}  // namespace swapd::cli
