// A recording's lines in, the decisions as lines of text or JSON out: the whole of `swapd --replay` but for the file.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "replay/decode.h"
#include "replay/replayer.h"

namespace swapd::replay {

class Playback {
 public:
  // print: gets each line of the answer, without a line feed.
  Playback(std::string name, bool json, std::function<void(const std::string&)> print);

  // line_feed: the line ended with one. A last line without one was cut off with the recorder: it is left out.
  [[nodiscard]] Status read(std::string_view line, bool line_feed);
  // Prints the summary. True: every answer is that of the live run. An error where there was nothing to replay.
  [[nodiscard]] Result<bool> finish();

 private:
  void show(const Replayer::Change& change);
  void show_difference();

  std::string name_;
  bool json_;
  std::function<void(const std::string&)> print_;
  Decoder decoder_;
  Replayer replayer_;
  bool cut_off_ = false;
};

}  // namespace swapd::replay
