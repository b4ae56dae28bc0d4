// Programs that the policy speaks of, in a /proc of the test's own, taken in by a backend that only notes it.
#include "enroll/auto_enroller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>

#include "base/fd.h"
#include "fakes/fake_backend.h"
#include "fakes/fake_scheduler.h"
#include "policy/policy.h"

namespace swapd::daemon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

// Events that the test makes.
class FakeExecs final : public sys::ExecEvents {
 public:
  explicit FakeExecs(std::deque<Result<Batch>>& batches) : fd_(::eventfd(1, EFD_CLOEXEC)), batches_(batches) {}
  [[nodiscard]] int fd() const override { return fd_.get(); }
  [[nodiscard]] Result<Batch> read(std::size_t /*most*/) override {
    if (batches_.empty()) return Batch{};
    auto next = std::move(batches_.front());
    batches_.pop_front();
    return next;
  }

 private:
  Fd fd_;
  std::deque<Result<Batch>>& batches_;
};

class NewcomersTest : public testing::Test {
 protected:
  static std::string directory() {
    std::string path = testing::TempDir() + "swapd-newcomers-XXXXXX";
    return ::mkdtemp(path.data()) == nullptr ? "" : path;
  }
  ~NewcomersTest() override { std::filesystem::remove_all(root_); }
  void runs(pid_t pid, const std::string& comm, const std::string& cgroup = "/", bool privileged = true) const {
    const std::filesystem::path dir = root_ + "/" + std::to_string(pid);
    const std::filesystem::path thread = dir / "task" / std::to_string(pid);
    std::filesystem::create_directories(thread);
    std::ofstream(dir / "comm") << comm << '\n';
    std::ofstream(thread / "stat") << pid << " (" << comm << ") S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 " << start
                                   << " 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
    std::ofstream(dir / "status") << "Name:\t" << comm << "\nUid:\t0\t1000\t1000\t1000\nNoNewPrivs:\t0\nCapEff:\t"
                                  << (privileged ? "000001ffffffffff" : "0") << '\n';
    std::ofstream(dir / "cmdline") << comm << '\0' << "-x" << '\0';
    std::ofstream(dir / "cgroup") << "0::" << cgroup << '\n';
  }
  void ends(pid_t pid) const { std::filesystem::remove_all(root_ + "/" + std::to_string(pid)); }
  void begin(const std::string& rules, bool installs_filters = false, bool dry_run = false) {
    auto policy = policy::parse(rules, "test.toml");
    ASSERT_TRUE(policy) << policy.error().text();
    const auto known = [this](pid_t pid, std::uint64_t start_time) {
      return start_time == start && managed_.contains(pid);
    };
    newcomers_.emplace(backend_, procfs_, policy->rules,
                       AutoEnroller::Options{.known = known,
                                             .settings = {procfs_, scheduler_},
                                             .installs_filters = installs_filters,
                                             .dry_run = dry_run});
    sd_event_new(&loop_);
    std::vector<std::unique_ptr<sys::ExecEvents>> events;
    events.push_back(std::make_unique<FakeExecs>(batches_));
    newcomers_->begin(loop_, std::move(events));
  }
  // One turn of the event loop.
  void starts(const std::vector<sys::ExecEvent>& programs, bool lost = false) {
    batches_.push_back(sys::ExecEvents::Batch{programs, lost});
    ASSERT_GE(sd_event_run(loop_, 0), 0);
  }
  // Until they have been looked at.
  void change(const std::vector<pid_t>& pids) {
    batches_.push_back(sys::ExecEvents::Batch{.changed = pids});
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(400);
    while (std::chrono::steady_clock::now() < until) ASSERT_GE(sd_event_run(loop_, 20'000), 0);
  }
  static sys::ExecEvent program(pid_t pid, const std::string& comm) {
    return {.pid = pid, .start_time = start, .comm = comm, .cmdline = comm + " -x"};
  }
  void TearDown() override {
    newcomers_.reset();
    sd_event_unref(loop_);
  }
  [[nodiscard]] std::vector<pid_t> enrolled() const {
    std::vector<pid_t> pids;
    for (const auto& request : backend_.enrolled) pids.push_back(request.pid);
    return pids;
  }
  void answer(const Status& status) {
    auto done = std::exchange(backend_.unanswered, {});
    for (auto& one : done) one(status);
  }

  static constexpr std::uint64_t start = 7;
  const std::string root_ = directory();
  sys::Procfs procfs_{root_};
  fakes::FakeScheduler scheduler_;
  fakes::FakeBackend backend_;
  std::set<pid_t> managed_;
  std::deque<Result<sys::ExecEvents::Batch>> batches_;
  sd_event* loop_ = nullptr;
  std::optional<AutoEnroller> newcomers_;
};

TEST_F(NewcomersTest, ThatRunAlreadyAreTakenInWithTheirTrees) {
  runs(10, "postgres", "/system.slice/postgresql.service");
  runs(11, "sh");
  runs(12, "postgres", "/user.slice");
  begin("[class.db]\n[match.db]\nunit = \"postgresql.service\"\nclass = \"db\"\nnice = -5\n");
  ASSERT_THAT(enrolled(), ElementsAre(10));
  EXPECT_EQ(backend_.enrolled[0].class_name, "db");
  EXPECT_TRUE(backend_.enrolled[0].tree);
  EXPECT_EQ(backend_.enrolled[0].caller.uid(), 0U);
  ASSERT_THAT(backend_.sets, SizeIs(1));
  EXPECT_EQ(backend_.sets[0].base.nice, -5);
  EXPECT_EQ(newcomers_->counts().matched, 1U);
  EXPECT_EQ(newcomers_->counts().managed, 1U);
}

TEST_F(NewcomersTest, WhatIsManagedAlreadyIsLeftAloneAndSoIsWhatARuleSays) {
  for (const pid_t pid : {10, 11}) runs(pid, "a");
  runs(12, "b");
  managed_ = {10};
  begin("[match.b]\ncomm = \"b\"\nmanage = false\n[match.a]\ncomm = [\"a\", \"b\"]\nfifo = 1\n");
  ASSERT_THAT(enrolled(), ElementsAre(11));
  const auto& spare = backend_.enrolled[0].spare;  // of its descendants
  EXPECT_TRUE(spare(10));
  EXPECT_FALSE(spare(11));
  EXPECT_TRUE(spare(12));
  EXPECT_TRUE(spare(13)) << "there is none";
}

TEST_F(NewcomersTest, AreTakenInAsTheyStart) {
  begin("[match.a]\ncomm = \"a\"\nnice = -5\n");
  runs(10, "a");
  starts({program(10, "a"), program(11, "b")});
  EXPECT_THAT(enrolled(), ElementsAre(10));
  ASSERT_THAT(backend_.sets, SizeIs(1));
  EXPECT_EQ(newcomers_->counts().programs, 2U);
}

TEST_F(NewcomersTest, ThatEndAtOnceAreCountedAndThatIsAll) {
  begin("[match.a]\ncomm = \"a\"\n");
  starts({program(10, "a"), program(11, "a")});
  EXPECT_EQ(newcomers_->counts().matched, 2U);
  EXPECT_THAT(enrolled(), IsEmpty());
}

// Between its start and the look at it, it has become another program, or another process has its id.
TEST_F(NewcomersTest, WhatFitsNoMoreIsNotTakenIn) {
  begin("[match.a]\ncomm = \"a\"\nfifo = 1\n");
  runs(10, "b");
  runs(11, "a");
  auto other = program(11, "a");
  other.start_time = start - 1;
  starts({program(10, "a"), other});
  EXPECT_EQ(newcomers_->counts().matched, 2U);
  EXPECT_THAT(enrolled(), IsEmpty());
}

TEST_F(NewcomersTest, ThatBecameAnotherWhileTheyWereAttachedToAreNotMadeImportant) {
  backend_.later = true;
  begin("[match.a]\ncomm = \"a\"\nfifo = 1\n", true);
  runs(10, "a");
  starts({program(10, "a")});
  runs(10, "b");
  answer(Done{});
  EXPECT_EQ(newcomers_->counts().managed, 1U);
  EXPECT_THAT(backend_.sets, IsEmpty());
}

TEST_F(NewcomersTest, WhatMayHaveNoFilterIsNotAttachedTo) {
  runs(10, "a", "/", false);
  runs(11, "a");
  begin("[match.a]\ncomm = \"a\"\n", true);
  EXPECT_THAT(enrolled(), ElementsAre(11));
}

TEST_F(NewcomersTest, ADryRunOnlyCounts) {
  runs(10, "a");
  begin("[match.a]\ncomm = \"a\"\nfifo = 1\n", false, true);
  EXPECT_EQ(newcomers_->counts().matched, 1U);
  EXPECT_THAT(enrolled(), IsEmpty());
  EXPECT_THAT(backend_.sets, IsEmpty());
}

// A desktop puts a program into a scope of its own just after it has started it.
TEST_F(NewcomersTest, WhatBecomesAnotherAfterItsStartIsTakenInThen) {
  begin("[class.app]\n[match.app]\ncgroup = \"/app.slice/*\"\nclass = \"app\"\n");
  runs(10, "a", "/session.scope");
  starts({program(10, "a")});
  EXPECT_THAT(enrolled(), IsEmpty());
  runs(10, "a", "/app.slice/app-1.scope");
  change({10});
  ASSERT_THAT(enrolled(), ElementsAre(10));
  EXPECT_EQ(backend_.enrolled[0].class_name, "app");
}

TEST_F(NewcomersTest, WhatARuleTookInGoesToTheRuleThatFitsLaterOn) {
  begin("[class.b]\n[match.a]\ncomm = \"a\"\n[match.b]\ncomm = \"b\"\nclass = \"b\"\n");
  runs(10, "a");
  starts({program(10, "a")});
  managed_ = {10};
  runs(10, "b");
  change({10, 10});
  ASSERT_THAT(enrolled(), ElementsAre(10, 10));
  EXPECT_EQ(backend_.enrolled[1].class_name, "b");
  EXPECT_FALSE(backend_.enrolled[1].tree) << "its children stay where they are";
  change({10});
  EXPECT_THAT(enrolled(), SizeIs(2)) << "the same rule fits";
  runs(10, "c");
  change({10});
  EXPECT_THAT(enrolled(), SizeIs(2)) << "where none fits, it stays";
}

TEST_F(NewcomersTest, WhatACommandHasSpokenOfIsNotJudgedAnew) {
  begin("[match.a]\ncomm = \"a\"\n[match.b]\ncomm = \"b\"\n");
  for (const pid_t pid : {10, 11}) runs(pid, "a");
  starts({program(10, "a")});
  newcomers_->by_hand(10);
  managed_ = {10, 11};  // 11: never by a rule
  for (const pid_t pid : {10, 11}) runs(pid, "b");
  change({10, 11});
  EXPECT_THAT(enrolled(), ElementsAre(10));
}

TEST_F(NewcomersTest, TheFactsThatRulesGoByAreFollowedAndNoOthers) {
  const auto facts = [](const std::string& text) { return followed_facts(policy::parse(text, "test.toml")->rules); };
  EXPECT_FALSE(facts("[match.a]\nexe = \"/a\"\n").any());
  const auto all = facts("[match.a]\nunit = \"a.service\"\n[match.b]\nuser = \"0\"\n[match.c]\ncomm = \"c\"\n");
  EXPECT_TRUE(all.comm && all.uid && all.cgroup);
  EXPECT_FALSE(facts("[match.b]\nuser = \"0\"\n").cgroup);
}

TEST_F(NewcomersTest, AreLookedForAgainWhereEventsWereLost) {
  begin("[match.a]\ncomm = \"a\"\n");
  runs(10, "a");
  starts({}, true);
  EXPECT_THAT(enrolled(), IsEmpty()) << "not at once: a storm would have no end of it";
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (enrolled().empty() && std::chrono::steady_clock::now() < until) ASSERT_GE(sd_event_run(loop_, 100'000), 0);
  EXPECT_THAT(enrolled(), ElementsAre(10));
}

TEST_F(NewcomersTest, WithoutEventsThereIsNoEndlessLoop) {
  begin("[match.a]\ncomm = \"a\"\n");
  batches_.push_back(Error(EIO, "reading"));
  ASSERT_GE(sd_event_run(loop_, 0), 0);
  EXPECT_EQ(sd_event_run(loop_, 0), 0) << "nobody listens any more";
}

TEST_F(NewcomersTest, WithoutRulesNobodyIsLookedAt) {
  runs(10, "a");
  begin("");
  EXPECT_THAT(enrolled(), IsEmpty());
}

// In a storm of programs that must be attached to one after the other.
TEST_F(NewcomersTest, EightAreUnderWayAndTheOthersWait) {
  backend_.later = true;
  for (pid_t pid = 100; pid < 120; ++pid) runs(pid, "a");
  begin("[match.a]\ncomm = \"a\"\n");
  EXPECT_THAT(enrolled(), SizeIs(8));
  for (pid_t pid = 100; pid < 120; ++pid)
    if (!std::ranges::count(enrolled(), pid)) {
      ends(pid);  // while it waited
      break;
    }
  answer(Done{});
  EXPECT_THAT(enrolled(), SizeIs(16));
  answer(Error(EINVAL, "refused"));
  EXPECT_THAT(enrolled(), SizeIs(19));
  answer(Done{});
  EXPECT_EQ(newcomers_->counts().matched, 20U);
  EXPECT_EQ(newcomers_->counts().managed, 11U);
}

TEST_F(NewcomersTest, AnAnswerAfterTheEndHarmsNobody) {
  backend_.later = true;
  runs(10, "a");
  begin("[match.a]\ncomm = \"a\"\n");
  newcomers_.reset();
  answer(Done{});
  EXPECT_THAT(enrolled(), UnorderedElementsAre(10));
}

}  // namespace
}  // namespace swapd::daemon
