// The journal: what it keeps over a crash, and what it makes of a file that is damaged, foreign or of another boot.
#include "actuate/journal.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace swapd::actuate {
namespace {

constexpr std::streamoff record_size = 512;

class JournalTest : public testing::Test {
 protected:
  JournalTest() {
    std::string pattern = testing::TempDir() + "swapd-journal-XXXXXX";
    dir_ = ::mkdtemp(pattern.data());
    path_ = dir_ + "/journal";
  }
  ~JournalTest() override { std::filesystem::remove_all(dir_); }

  Journal open(std::string_view boot = "boot") {
    auto opened = Journal::open(dir_, boot);
    EXPECT_TRUE(opened.ok()) << opened.error().text();
    return std::move(*opened);
  }
  static Change thread(pid_t tid) {
    Change change;
    change.thread = {tid, 77};
    change.base.nice = -3;
    change.base.runtime_ns = 5;
    change.set.policy = SchedPolicy::fifo;
    change.set.rt_priority = 9;
    change.set.reset_on_fork = true;
    return change;
  }
  static Change group(const std::string& path) {
    Change change;
    change.kind = Change::Kind::cgroup;
    change.path = path;
    change.old_value = 1024;
    change.new_value = 9548;
    return change;
  }
  void poke(std::streamoff at, std::string_view bytes) const {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(at);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  void flip(std::streamoff at) const {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const char byte = static_cast<char>(~file.get());
    file.seekp(at);
    file.put(byte);
  }

  std::string dir_, path_;
};

TEST_F(JournalTest, WhatWasNotClearedIsFoundTheOldestFirst) {
  {
    Journal journal = open();
    ASSERT_TRUE(journal.write(thread(10)).ok());
    auto cleared = journal.write(thread(11));
    ASSERT_TRUE(cleared.ok());
    ASSERT_TRUE(journal.write(group("/a b")).ok());
    journal.clear(*cleared);
    ASSERT_TRUE(journal.write(thread(12)).ok());
    EXPECT_EQ(journal.used(), 3U);
  }
  const Journal journal = open();
  ASSERT_EQ(journal.left().size(), 3U);
  Change first = thread(10);
  first.sequence = 1;
  EXPECT_EQ(journal.left()[0].change, first);
  EXPECT_EQ(journal.left()[1].change.path, "/a b");
  EXPECT_EQ(journal.left()[1].change.new_value, 9548);
  EXPECT_EQ(journal.left()[2].change.thread.tid, 12);
  EXPECT_TRUE(journal.notes().empty());
}

TEST_F(JournalTest, NewRecordsSpareTheOldOnes) {
  { ASSERT_TRUE(open().write(thread(10)).ok()); }
  {
    Journal journal = open();
    auto slot = journal.write(thread(11));
    ASSERT_TRUE(slot.ok());
    EXPECT_NE(*slot, journal.left()[0].slot);
  }
  Journal journal = open();
  ASSERT_EQ(journal.left().size(), 2U);
  for (const auto& left : journal.left()) journal.clear(left.slot);
  EXPECT_EQ(journal.used(), 0U);
}

TEST_F(JournalTest, ATornRecordIsIgnored) {
  {
    Journal journal = open();
    ASSERT_TRUE(journal.write(thread(10)).ok());
    ASSERT_TRUE(journal.write(thread(11)).ok());
  }
  poke(record_size + 60, "torn");
  const Journal journal = open();
  ASSERT_EQ(journal.left().size(), 1U);
  EXPECT_EQ(journal.left()[0].change.thread.tid, 11);
  EXPECT_THAT(journal.notes(), testing::ElementsAre("1 damaged journal records: ignoring them"));
}

TEST_F(JournalTest, EveryByteOfARecordIsGuarded) {
  for (std::streamoff at = 4; at < 200; at += 7) {
    std::filesystem::remove(path_);
    { ASSERT_TRUE(open().write(thread(0x01010101)).ok()); }
    flip(record_size + at);
    EXPECT_TRUE(open().left().empty()) << "byte " << at;
  }
}

TEST_F(JournalTest, AnotherBootsRecordsAreVoid) {
  { ASSERT_TRUE(open("yesterday").write(thread(10)).ok()); }
  {
    const Journal journal = open("today");
    EXPECT_TRUE(journal.left().empty());
    EXPECT_EQ(journal.notes().size(), 1U);
  }
  EXPECT_TRUE(open("yesterday").left().empty()) << "they are gone for good";
}

TEST_F(JournalTest, ATruncatedFileKeepsWhatIsThere) {
  {
    Journal journal = open();
    ASSERT_TRUE(journal.write(thread(10)).ok());
    ASSERT_TRUE(journal.write(thread(11)).ok());
  }
  std::filesystem::resize_file(path_, static_cast<std::uintmax_t>(2 * record_size + 100));
  const Journal journal = open();
  ASSERT_EQ(journal.left().size(), 1U);
  EXPECT_EQ(journal.left()[0].change.thread.tid, 10);
}

TEST_F(JournalTest, GarbageIsSetAside) {
  std::ofstream(path_) << std::string(5000, 'x');
  {
    Journal journal = open();
    EXPECT_TRUE(journal.left().empty());
    ASSERT_EQ(journal.notes().size(), 1U);
    EXPECT_THAT(journal.notes()[0], testing::HasSubstr("journal.bad"));
    EXPECT_TRUE(journal.write(thread(10)).ok());
  }
  EXPECT_EQ(std::filesystem::file_size(dir_ + "/journal.bad"), 5000U);
  EXPECT_EQ(open().left().size(), 1U);
}

TEST_F(JournalTest, AShortFileAndAnotherVersionAreSetAsideToo) {
  std::ofstream(path_) << "swapd";
  EXPECT_EQ(open().notes().size(), 1U);
  poke(8, "\x07");  // the version
  const Journal journal = open();
  EXPECT_EQ(journal.notes().size(), 1U);
}

TEST_F(JournalTest, AnEmptyFileIsANewOne) {
  std::ofstream(path_).flush();
  EXPECT_TRUE(open().notes().empty());
}

TEST_F(JournalTest, ALinkIsNotFollowed) {
  std::ofstream(dir_ + "/precious") << "do not touch";
  std::filesystem::create_symlink(dir_ + "/precious", path_);
  const auto opened = Journal::open(dir_, "boot");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), ELOOP);
}

TEST_F(JournalTest, AFullJournalRefuses) {
  Journal journal = open();
  std::vector<Journal::Slot> slots;
  for (std::size_t i = 0; i < Journal::capacity; ++i) {
    auto slot = journal.write(thread(static_cast<pid_t>(i + 1)));
    ASSERT_TRUE(slot.ok());
    slots.push_back(*slot);
  }
  auto refused = journal.write(thread(1));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ENOSPC);
  journal.clear(slots[700]);
  auto again = journal.write(thread(1));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, slots[700]);
}

TEST_F(JournalTest, APathThatDoesNotFitIsRefused) {
  Journal journal = open();
  EXPECT_TRUE(journal.write(group("/" + std::string(Journal::max_path - 1, 'x'))).ok());
  auto refused = journal.write(group("/" + std::string(Journal::max_path, 'x')));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ENAMETOOLONG);
}

TEST_F(JournalTest, TheStateDirectoryMustBeThere) {
  const auto opened = Journal::open(dir_ + "/no/such", "boot");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), ENOENT);
}

// A kill may come between any two instructions of the writer: so each is looked behind.
TEST_F(JournalTest, ARecordIsNoneUntilItIsWhole) {
  const pid_t writer = ::fork();
  ASSERT_GE(writer, 0);
  if (writer == 0) {
    ::alarm(60);
    Journal journal = open();
    if (::ptrace(PTRACE_TRACEME) != 0) ::_exit(1);
    ::raise(SIGSTOP);
    const bool kept = journal.write(thread(10)).ok();
    ::raise(SIGSTOP);
    ::_exit(kept ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(writer, &status, 0), writer);
  ASSERT_TRUE(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP) << status;
  const auto first_record = [&] {
    std::ifstream file(path_, std::ios::binary);
    file.seekg(record_size);
    std::string bytes(record_size, '\0');
    file.read(bytes.data(), record_size);
    return bytes;
  };
  std::string whole;
  do {
    const std::string seen = first_record();
    if (std::string_view(seen).substr(0, 4) != std::string_view("\0\0\0\0", 4)) {
      if (whole.empty()) whole = seen;
      ASSERT_EQ(seen, whole) << "it counts already, and is still being written";
    }
    ASSERT_EQ(::ptrace(PTRACE_SINGLESTEP, writer, nullptr, nullptr), 0);
    ASSERT_EQ(::waitpid(writer, &status, 0), writer);
  } while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
  EXPECT_FALSE(whole.empty());
  ASSERT_EQ(::ptrace(PTRACE_CONT, writer, nullptr, nullptr), 0);
  ASSERT_EQ(::waitpid(writer, &status, 0), writer);
  EXPECT_EQ(status, 0);
  const Journal next = open();
  EXPECT_THAT(next.notes(), testing::IsEmpty());
  ASSERT_EQ(next.left().size(), 1U);
  EXPECT_EQ(next.left()[0].change.thread.tid, 10);
}

}  // namespace
}  // namespace swapd::actuate
