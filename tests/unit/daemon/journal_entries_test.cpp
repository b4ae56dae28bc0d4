// Entries of the log: which are told, and what the journal gets of them.
#include "control/journal_entries.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>

#include "log/journal_sink.h"
#include "log/log.h"

namespace swapd::daemon {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

Time at(int second) { return Time(seconds(second)); }

TEST(RateLimiter, TellsTheFirstAndLaterHowManyMore) {
  RateLimiter sparing(seconds(10));
  const RateLimiter::Key one{{1, 1}, {2, 1}, 0};
  EXPECT_EQ(sparing.tell(one, at(0)), 0U);
  EXPECT_EQ(sparing.tell(one, at(1)), std::nullopt);
  EXPECT_EQ(sparing.tell(one, at(9)), std::nullopt);
  EXPECT_EQ(sparing.tell({{1, 1}, {3, 1}, 0}, at(9)), 0U) << "of another one at once";
  EXPECT_EQ(sparing.tell({{1, 1}, {2, 1}, 1}, at(9)), 0U) << "of something else, too";
  EXPECT_EQ(sparing.tell(one, at(10)), 2U);
  EXPECT_EQ(sparing.tell(one, at(11)), std::nullopt);
  EXPECT_EQ(sparing.tell(one, at(40)), 1U);
}

TEST(RateLimiter, RemembersNoMoreThanItMay) {
  RateLimiter sparing(seconds(10), 4);
  for (pid_t i = 1; i <= 100; ++i) EXPECT_EQ(sparing.tell({{i, 1}, {}, 0}, at(0)), 0U);
  EXPECT_EQ(sparing.tell({{100, 1}, {}, 0}, at(1)), std::nullopt) << "the last one is known";
}

TEST(Journal, IsTheStreamOfThatDeviceAndInode) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  struct stat seen {};
  ASSERT_EQ(::fstat(ends[1], &seen), 0);
  const std::string stream = std::to_string(seen.st_dev) + ":" + std::to_string(seen.st_ino);
  EXPECT_TRUE(is_journal(stream.c_str(), ends[1]));
  EXPECT_FALSE(is_journal((stream + "1").c_str(), ends[1])) << "a service's child whose stderr is a file or a pipe";
  EXPECT_FALSE(is_journal(nullptr, ends[1]));
  for (const int end : ends) ::close(end);
  EXPECT_FALSE(is_journal(stream.c_str(), ends[1]));
}

TEST(Entries, AreAMessageAndFields) {
  std::string line = "a lends to b";
  line += field_separator;
  line += "SWAPD_PID=7";
  line += field_separator;
  line += "SWAPD_COMM=x=y";
  EXPECT_THAT(journal_fields(line, 6), ElementsAre("SYSLOG_IDENTIFIER=swapd", "PRIORITY=6", "MESSAGE=a lends to b",
                                                   "SWAPD_PID=7", "SWAPD_COMM=x=y"));
  EXPECT_THAT(journal_fields("", 3), ElementsAre("SYSLOG_IDENTIFIER=swapd", "PRIORITY=3", "MESSAGE="));
}

TEST(Entries, EachKindStandsInTheCatalogue) {
  std::ifstream file(SWAPD_SOURCE_DIR "/systemd/swapd.catalog");
  const std::string catalogue((std::istreambuf_iterator<char>(file)), {});
  for (const std::string_view id : {message_id::donation, message_id::ineffective, message_id::refused})
    EXPECT_THAT(catalogue, HasSubstr("-- " + std::string(id) + "\nSubject: "));
}

TEST(DenialLog, GiveTheOutcomeBack) {
  ManualClock clock;
  DenialLog refusals(clock);
  const bus::Caller caller(1000, {});
  EXPECT_TRUE(refusals.heard("release", 7, caller, Done{}));
  const Status refused = refusals.heard("release", 7, caller, Error(EACCES, "process 7 belongs to another user"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), EACCES);
}

}  // namespace
}  // namespace swapd::daemon
