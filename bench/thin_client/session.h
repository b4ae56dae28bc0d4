// A session of the thin-client server: an X server of its own that viewers reach by a unix socket, and one program that
// draws on it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/process.h"

namespace swapd::bench {

// One line that names the Debian package of a program that is not there; none: all are.
[[nodiscard]] std::optional<std::string> missing_thin_client_program(const std::vector<std::string>& players);

// A film of test pictures, 352×240 at 25 frames a second, MPEG-1 as in [SWAP04 §5.3].
inline constexpr double film_frames_per_s = 25;
[[nodiscard]] Status make_test_film(const std::string& path, double seconds);

class Session {
 public:
  // Starts an X server on a display that is free, with `attr`, and waits until it can be used. `place` is its and its
  // program's own directory; it is made here.
  [[nodiscard]] static Result<Session> open(const std::string& place, const std::vector<int>& cpus,
                                            std::optional<SchedAttr> attr);
  Session(Session&&) = default;
  Session& operator=(Session&&) = delete;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  // Ends the program and all below it, then the server, which takes its socket and lock away.
  ~Session();

  // Starts mplayer, without an end; `output`: where its status lines go.
  [[nodiscard]] Status play(const std::string& film, std::optional<SchedAttr> attr, const std::string& output);
  // Starts chromium at an address.
  [[nodiscard]] Status browse(const std::string& address, std::optional<SchedAttr> attr);
  [[nodiscard]] std::string viewer_socket() const { return place_ + "/rfb"; }
  // The server or the program, if it has ended by itself, and how; none: both run.
  [[nodiscard]] std::optional<std::string> ended();
  // Ends the program and tells the server to end, without waiting for it.
  void finish();

 private:
  Session(std::string place, std::vector<int> cpus) : place_(std::move(place)), cpus_(std::move(cpus)) {}
  [[nodiscard]] Status start_program(const std::vector<std::string>& words, std::optional<SchedAttr> attr,
                                     const std::string& output);
  [[nodiscard]] Status await_display(int pipe);

  std::string place_;
  std::vector<int> cpus_;
  int display_ = -1;
  Child server_, program_;
};

// All servers end at the same time.
void end_sessions(std::vector<Session>& sessions);

}  // namespace swapd::bench
