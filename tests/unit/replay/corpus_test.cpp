// The seeds of the fuzz target: each good recording is replayed to its end, each bad one is refused with one line.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "replay/playback.h"

namespace swapd::test {
namespace {

namespace fs = std::filesystem;

std::string error_in(const fs::path& file) {
  std::ifstream in(file);
  replay::Playback playback(file.filename(), false, [](const std::string&) {});
  for (std::string line; std::getline(in, line);)
    if (const Status read = playback.read(line, !in.eof()); !read) return read.error().context();
  const auto finished = playback.finish();
  return finished ? "" : finished.error().context();
}

std::vector<fs::path> files_in(const std::string& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(SWAPD_SOURCE_DIR) / "tests/unit/replay" / folder))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

TEST(Corpus, GoodRecordingsAreReplayed) {
  const auto files = files_in("good");
  EXPECT_GE(files.size(), 5U);
  for (const fs::path& file : files) EXPECT_EQ(error_in(file), "") << file;
}

TEST(Corpus, BadRecordingsAreRefusedWithOneLine) {
  const auto files = files_in("bad");
  EXPECT_GE(files.size(), 8U);
  for (const fs::path& file : files) {
    const std::string error = error_in(file);
    EXPECT_THAT(error, testing::StartsWith(file.filename().string() + ":"));
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace swapd::test
