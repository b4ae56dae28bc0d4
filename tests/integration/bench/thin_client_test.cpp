// The parts of thin-client that need no X server: the viewer's protocol, the player's lines, the figures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "thin_client/audience.h"
#include "thin_client/pages.h"
#include "thin_client/rfb_client.h"
#include "thin_client/thin_client.h"

namespace swapd::bench {
namespace {

using namespace std::string_literals;
using testing::DoubleEq;
using testing::HasSubstr;

// A server with a screen of 800×600 and the name "x", up to the first request (RFC 6143, sections 7.1 to 7.3).
const std::string greeting = "RFB 003.008\n"s + "\1\1"s + "\0\0\0\0"s;
const std::string init = "\x03\x20\x02\x58"s + std::string(16, '\0') + "\0\0\0\1x"s;
const std::string asks_all = "\3\0\0\0\0\0\x03\x20\x02\x58"s, asks_next = "\3\1\0\0\0\0\x03\x20\x02\x58"s;
const std::string hello = "RFB 003.008\n"s + "\1" + "\1" + "\2\0\0\1\0\0\0\x10"s + asks_all;

std::string rectangle(const std::string& data) {
  return std::string(8, '\0') + "\0\0\0\x10"s + "\0\0\0"s + static_cast<char>(data.size()) + data;
}
std::string update(const std::vector<std::string>& rectangles) {
  std::string bytes = "\0\0\0"s + static_cast<char>(rectangles.size());
  for (const std::string& data : rectangles) bytes += rectangle(data);
  return bytes;
}

TEST(RfbClient, AsksForTheWholeScreenAndThenForEachNextUpdate) {
  RfbClient client;
  EXPECT_EQ(client.take(greeting + init), hello);
  EXPECT_EQ(client.updates(), 0);
  EXPECT_EQ(client.take(update({"pixels", "more"})), asks_next);
  EXPECT_EQ(client.take(update({""})), asks_next);
  EXPECT_EQ(client.updates(), 2);
}

TEST(RfbClient, AnUpdateCountsWhenAllOfItIsThere) {
  RfbClient client;
  (void)client.take(greeting + init);
  const std::string bytes = update({"one", "two"});
  EXPECT_EQ(client.take(bytes.substr(0, bytes.size() - 1)), "");
  EXPECT_EQ(client.updates(), 0);
  EXPECT_EQ(client.take(bytes.substr(bytes.size() - 1)), asks_next);
  EXPECT_EQ(client.updates(), 1);
}

// The kernel cuts the stream where it likes. A bell, colours and a clipboard mean nothing here.
TEST(RfbClient, PiecesOfAnySizeAreTheSame) {
  const std::string others = "\2"s + "\1\0\0\0\0\2"s + std::string(12, 'c') + "\3\0\0\0\0\0\0\4text"s;
  RfbClient client;
  std::string said;
  for (const char byte : greeting + init + others + update({"pixels"}) + others) said += client.take({&byte, 1});
  EXPECT_EQ(said, hello + asks_next);
  EXPECT_EQ(client.updates(), 1);
  EXPECT_FALSE(client.failed());
}

TEST(RfbClient, AServerThatWantsAPasswordOrSendsAnotherEncodingIsGivenUp) {
  RfbClient locked;
  (void)locked.take("RFB 003.008\n\1\2"s);
  EXPECT_TRUE(locked.failed());
  RfbClient raw;
  (void)raw.take(greeting + init + "\0\0\0\1"s + std::string(12, '\0'));
  EXPECT_TRUE(raw.failed());
  EXPECT_EQ(raw.take(update({"pixels"})), "");
}

TEST(StatusLines, AreCountedAlsoAcrossPieces) {
  StatusLines lines;
  EXPECT_EQ(lines.take("VIDEO:  MPEG1\nVO: [x11]\nV:   0.5   2/  2 \rV:   0.6 "), 2);
  EXPECT_EQ(lines.take("  3/  3 ??% \rV"), 0);
  EXPECT_EQ(lines.take(":   0.6   4/  4 \r"), 1);
}

constexpr double period = 0.04, gives_up = 0.2;

TEST(ThinClientFigures, FramesAtTheirPaceAreInTime) {
  const Window even{.length_s = 0.2, .at_s = {0, 0.04, 0.085, 0.12, 0.16}};
  EXPECT_THAT(rate_of_all(even), DoubleEq(25));
  EXPECT_THAT(rate_in_time(even, period, gives_up), DoubleEq(25));
  EXPECT_EQ(rate_in_time({.length_s = 1, .at_s = {}}, period, gives_up), 0);
}

// Frames that were due at 0.08 and 0.12 come with the one that is due at 0.16.
TEST(ThinClientFigures, ABurstThatMakesUpForADelayWasLate) {
  const Window halting{.length_s = 1, .at_s = {0, 0.04, 0.155, 0.157, 0.16}};
  EXPECT_EQ(rate_of_all(halting), 5);
  EXPECT_EQ(rate_in_time(halting, period, gives_up), 3);
}

TEST(ThinClientFigures, AfterALongDelayTheCountBeginsAnew) {
  const Window halting{.length_s = 1, .at_s = {0, 0.04, 0.5, 0.54, 0.58}};
  EXPECT_EQ(rate_in_time(halting, period, gives_up), 4) << "all but the one at 0.5";
}

TEST(ThinClientFigures, AWindowThatBeginsWithALateFrameIsCountedFromThoseThatFollow) {
  const Window late_first{.length_s = 1, .at_s = {0.1, 0.103, 0.106, 0.12, 0.16}};
  EXPECT_EQ(rate_in_time(late_first, period, gives_up), 5) << "nothing tells when the first ones were due";
}

TEST(ThinClientFigures, APageThatNeverCameTookTheWholeTime) {
  EXPECT_EQ(seconds_each({.length_s = 6, .at_s = {1, 2, 3}}), 2);
  EXPECT_EQ(seconds_each({.length_s = 6, .at_s = {}}), 6);
}

TEST(Pages, EachAsksForTheNext) { EXPECT_THAT(page(7), HasSubstr("location.replace('/page/8')")); }

}  // namespace
}  // namespace swapd::bench
