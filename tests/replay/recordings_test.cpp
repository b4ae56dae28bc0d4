// Recordings of real runs, made with `swapctl record` on one busy CPU (boot id and times of the day taken out): model
// and decider must decide today as swapd did then, and print the same bytes each time. Where a change of the rules is
// meant, make the recordings anew, as docs/recording.md says.
//
//   inversion               a FIFO client asks a server that computes, and waits
//   chain-from-the-middle   begun while a nice -10 client waits for a relay that waits for a server
//   choice                  a FIFO reader of a fifo that three threads could write to; the one that does changes
//   lock-and-pipeline       flock(1) at FIFO 50, then a round-robin pipeline
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "replay/playback.h"

namespace swapd::test {
namespace {

namespace fs = std::filesystem;

struct Replayed {
  std::string text;
  std::vector<std::string> lines;
  bool same = false;
};

Replayed replayed(const std::string& name, bool json) {
  const fs::path file = fs::path(SWAPD_SOURCE_DIR) / "tests/replay" / (name + ".rec");
  Replayed out;
  replay::Playback playback(name, json, [&](const std::string& line) {
    out.text += line + '\n';
    out.lines.push_back(line);
  });
  std::ifstream in(file);
  EXPECT_TRUE(in) << file;
  for (std::string line; std::getline(in, line);) {
    const Status read = playback.read(line, !in.eof());
    EXPECT_TRUE(read.ok()) << read.error().context();
    if (!read) return out;
  }
  const auto same = playback.finish();
  EXPECT_TRUE(same.ok());
  out.same = same && *same;
  return out;
}

class Recording : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(all, Recording,
                         testing::Values("inversion", "chain-from-the-middle", "choice", "lock-and-pipeline"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(Recording, IsDecidedAsThenAndTheSameEachTime) {
  for (const bool json : {false, true}) {
    const Replayed once = replayed(GetParam(), json);
    EXPECT_TRUE(once.same) << once.text;
    EXPECT_GT(once.lines.size(), 2U);
    EXPECT_EQ(replayed(GetParam(), json).text, once.text);
  }
}

TEST(Recordings, EachFileIsTested) {
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator(fs::path(SWAPD_SOURCE_DIR) / "tests/replay"))
    if (entry.path().extension() == ".rec") files.insert(entry.path().stem());
  EXPECT_EQ(files, (std::set<std::string>{"chain-from-the-middle", "choice", "inversion", "lock-and-pipeline"}));
}

TEST(Recordings, AChainIsKnownFromItsSnapshot) {
  EXPECT_THAT(replayed("chain-from-the-middle", false).lines.front(),
              testing::ContainsRegex("^ +-?0\\.0000.* lends nice -10 to [0-9]+ [0-9]+ for socket:"));
}

TEST(Recordings, AChoiceGoesOnWhenItsQuantumIsUsed) {
  std::set<std::string> favoured;
  for (const std::string& line : replayed("choice", false).lines)
    if (const std::size_t at = line.find(" to "); line.find("one of several") != std::string::npos)
      favoured.insert(line.substr(at, line.find(" for ") - at));
  EXPECT_GE(favoured.size(), 2U);
}

}  // namespace
}  // namespace swapd::test
