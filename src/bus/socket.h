// The listening end of swapd's private socket.
//
// The file is made with mode 0600 from the start (fchmod before bind), in a directory that is created where missing. A
// file that a dead daemon left is replaced; one behind which a daemon answers is "already running". Two daemons that
// start at once are kept apart by a lock on the directory, held while one looks, unlinks and binds.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace swapd::bus {

class ListeningSocket {
 public:
  // EADDRINUSE: another daemon answers there. EEXIST: the file is no socket. ENAMETOOLONG: past 107 bytes.
  // option: which gives the path, for the error's text.
  [[nodiscard]] static Result<ListeningSocket> open(const std::string& path, const std::string& option = "--socket");
  ListeningSocket(ListeningSocket&&) noexcept = default;
  ListeningSocket& operator=(ListeningSocket&&) noexcept = delete;
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;
  ~ListeningSocket();  // removes the file where it is still ours

  [[nodiscard]] int fd() const { return fd_.get(); }
  // The present owner of the file: chown(1) hands the socket to another user. Our own uid where the file is gone or
  // replaced.
  [[nodiscard]] uid_t owner() const;

 private:
  ListeningSocket(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  [[nodiscard]] bool is_ours(const struct stat& now) const;

  Fd fd_;
  std::string path_;
  dev_t dev_ = 0;
  ino_t ino_ = 0;
};

}  // namespace swapd::bus
