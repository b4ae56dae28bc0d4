#include "blocked_program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "observe/resolve/syscall_table.h"

extern char** environ;

namespace swapd::observe {

Child::Child(std::vector<std::string> command) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  EXPECT_EQ(::pipe2(in.data(), O_CLOEXEC), 0);
  EXPECT_EQ(::pipe2(out.data(), O_CLOEXEC), 0);
  input_.reset(in[1]);
  output_.reset(out[0]);
  const Fd child_in(in[0]);
  const Fd child_out(out[1]);
  std::vector<char*> arguments;
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  EXPECT_EQ(::posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ), 0) << command[0];
  posix_spawn_file_actions_destroy(&actions);
}

Child::~Child() {
  input_.reset();
  int status = 0;
  const bool ended = eventually([&] { return ::waitpid(pid_, &status, WNOHANG) != 0; });
  EXPECT_TRUE(ended) << "process " << pid_ << " did not end";
  if (!ended) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status, 0);
  }
}

std::string Child::line() {
  std::string out;
  char byte = 0;
  while (::read(output_.get(), &byte, 1) == 1 && byte != '\n') out += byte;
  return out;
}

std::string test_name(std::string scenario) {
  std::replace(scenario.begin(), scenario.end(), '-', '_');
  return scenario;
}

CallSite ResolverTest::blocked(pid_t tid, const std::set<int>& calls) const {
  CallSite site;
  const bool found = eventually([&] {
    const auto state = procfs_.syscall(tid);
    const auto stat = procfs_.stat(tid);
    if (!state || !stat || !state->in_call || stat->state != 'S') return false;
    if (!calls.empty() && !calls.contains(state->nr)) return false;
    site = {tid, procfs_.tgid(tid).value_or(0), state->nr, state->args};
    return true;
  });
  EXPECT_TRUE(found) << "thread " << tid << " does not block as expected";
  return site;
}

ResolverTest::Story ResolverTest::start(const std::string& program, const std::string& scenario) {
  Story story;
  story.program =
      std::make_unique<Child>(std::vector<std::string>{std::string(TEST_PROGRAMS) + "/block_" + program, scenario});
  const std::string line = story.program->line();
  EXPECT_EQ(std::sscanf(line.c_str(), "%d %d", &story.waiter, &story.provider), 2) << scenario << ": " << line;
  // A gate that has not opened yet is a pipe it reads; the wait meant is the one it stays in.
  story.site = blocked(story.waiter);
  bool same = false;
  EXPECT_TRUE(eventually([&] {
    const CallSite again = blocked(story.waiter);
    same = again.nr == story.site.nr && again.args == story.site.args;
    story.site = again;
    return same;
  }));
  story.members = {procfs_.tgid(story.waiter).value_or(0), story.program->pid()};
  const pid_t provider = procfs_.tgid(story.provider).value_or(0);
  if (provider != story.members.front()) story.members.push_back(provider);
  return story;
}

std::set<pid_t> ResolverTest::providers(const Story& story, const std::vector<Resource>& resources) {
  std::set<pid_t> out;
  for (const Found& found : resolver_.scan(story.waiter, resources, story.members)) {
    for (const ThreadId& thread : found.threads) out.insert(thread.tid);
  }
  return out;
}

void ResolverTest::expect_provider(const Story& story, ResourceKind kind, Evidence evidence) {
  const Wait wait = resolver_.full(story.site);
  EXPECT_TRUE(wait.complete);
  ASSERT_FALSE(wait.awaited.empty()) << call_name(story.site.nr);
  for (const Resource& resource : wait.awaited) EXPECT_EQ(resource.kind, kind) << text(resource);
  EXPECT_THAT(providers(story, wait.awaited), testing::ElementsAre(story.provider)) << text(wait.awaited.front());
  for (const Found& found : resolver_.scan(story.waiter, wait.awaited, story.members)) {
    EXPECT_TRUE(found.threads.empty() || found.evidence == evidence);
  }
}

void ResolverTest::expect_quick(const Story& story) {
  const Wait quick = resolver_.quick(story.site);
  EXPECT_TRUE(quick.complete) << call_name(story.site.nr);
  EXPECT_EQ(quick.awaited, resolver_.full(story.site).awaited);
}

}  // namespace swapd::observe
