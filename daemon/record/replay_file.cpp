#include "record/replay_file.h"

#include <cerrno>
#include <fstream>
#include <iostream>
#include <system_error>

#include "replay/playback.h"

namespace swapd::daemon {

int replay_file(const std::string& file, bool json) {
  const auto failed = [](const std::string& line) {
    std::cout.flush();
    std::cerr << "swapd: " << line << '\n';
    return 2;
  };
  std::ifstream in(file);
  if (!in) return failed(file + ": cannot be read: " + std::generic_category().message(errno));
  replay::Playback playback(file, json, [](const std::string& line) { std::cout << line << '\n'; });
  for (std::string line; std::getline(in, line);)
    if (const Status read = playback.read(line, !in.eof()); !read) return failed(read.error().context());
  if (in.bad()) return failed(file + ": cannot be read: " + std::generic_category().message(errno));
  const auto same = playback.finish();
  if (!same) return failed(same.error().context());
  if (!std::cout.flush()) {
    std::cerr << "swapd: cannot write the answer: is the disk full?\n";
    return 1;
  }
  return *same ? 0 : 1;
}

}  // namespace swapd::daemon
