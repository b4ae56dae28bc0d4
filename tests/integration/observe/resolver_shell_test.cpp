// Locks as shell scripts take them: the pid in /proc/locks is of a flock(1) that has ended long ago.
#include <sys/syscall.h>

#include <array>
#include <cstdlib>
#include <memory>

#include "blocked_program.h"

namespace swapd::observe {
namespace {

class Shell : public ResolverTest {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(directory_.data()), nullptr);
    lock_ = std::string(directory_.data()) + "/lock";
  }
  void TearDown() override {
    ::unlink(lock_.c_str());
    ::rmdir(directory_.data());
  }
  std::array<char, 32> directory_{"/tmp/swapd-test-XXXXXX"};
  std::string lock_;
};

TEST_F(Shell, TheJobHoldsWhatFlockTook) {
  // The job says its number once the lock is taken, and ends with its input.
  auto holder = std::make_unique<Child>(std::vector<std::string>{
      "/bin/bash", "-c", "( flock 9; exec 8<&0; cat <&8 >/dev/null & echo $!; exec 1>&-; wait ) 9>" + lock_});
  const pid_t job = std::stoi(holder->line());
  Child waiting({"/bin/bash", "-c", "flock " + lock_ + " true & echo $!; wait"});
  Story story;
  story.waiter = std::stoi(waiting.line());
  story.provider = job;
  story.site = blocked(story.waiter, {SYS_flock});
  const auto job_parent = procfs_.stat(job);
  ASSERT_TRUE(job_parent.ok());
  story.members = {story.waiter, waiting.pid(), holder->pid(), job_parent->ppid, job};

  bool taker_lives = false;
  const Wait wait = resolver_.quick(story.site);
  ASSERT_FALSE(wait.awaited.empty());
  for (const sys::LockLine& line : procfs_.locks()) {
    if (line.ino == wait.awaited[0].ids[1] && !line.waiting && procfs_.stat(line.pid).ok()) taker_lives = true;
  }
  EXPECT_FALSE(taker_lives) << "the test is about a taker that has ended";
  // The subshell has the descriptor as well, and waits for the job: both hold it until both have ended.
  EXPECT_THAT(providers(story, wait.awaited), testing::UnorderedElementsAre(job, job_parent->ppid));
  holder.reset();  // the other one ends when it gets the lock
}

}  // namespace
}  // namespace swapd::observe
