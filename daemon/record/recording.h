// The control thread's side of `swapctl record`: takes what the engine has left in its ring, writes it as lines, and
// hands them to the client that asked. One recording at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "record/record_ring.h"
#include "replay/encode.h"

namespace swapd::daemon {

class Recording {
 public:
  // Gets whole lines. False: there is no room now, and they are lost. Asked with none: is there room?
  using Sink = std::function<bool(std::string_view)>;
  // snapshot: has the engine put a snapshot into its ring.
  Recording(RecordRing& ring, std::function<void()> snapshot, const Clock& clock);

  [[nodiscard]] Status begin(Sink sink, replay::Header about);
  // The ring was rung.
  void forward();
  // Hands over what is left, and the end line.
  void end();

 private:
  void drain();
  void write(RecordRing::Item& item);
  bool flush();

  RecordRing& ring_;
  std::function<void()> snapshot_;
  const Clock& clock_;
  Sink sink_;
  replay::Header about_;
  std::optional<replay::Encoder> encoder_;  // from the first snapshot on
  std::string chunk_;
  replay::End chunk_counts_, counts_;
  std::uint64_t chunk_records_ = 0;
  bool begun_ = false;  // the header has been taken
};

}  // namespace swapd::daemon
