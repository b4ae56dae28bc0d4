// Locks on files: flock and record locks.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>

#include "mechanisms/lock_pair.h"

namespace swapd::bench {

namespace {

class FileLocks : public LockPair {
 public:
  Status create(Place& place) override {
    place.client.word = place.server.word = place.dir + "/lock";
    return Done{};
  }
};

Result<Fd> open_lock_file(const std::string& name) {
  Fd fd(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return errno_error(name);
  return fd;
}

class Flock final : public FileLocks {
 protected:
  Status open(const Peer& peer) override {
    for (int i = 0; i < 2; ++i) {
      auto fd = open_lock_file(peer.word + std::to_string(i));
      if (!fd) return fd.error();
      files_[i] = std::move(*fd);
    }
    return Done{};
  }
  Status lock(int which) override { return change(which, LOCK_EX); }
  Status unlock(int which) override { return change(which, LOCK_UN); }

 private:
  Status change(int which, int operation) {
    if (::flock(files_[which].get(), operation) != 0) return errno_error("flock");
    return Done{};
  }
  std::array<Fd, 2> files_;
};

// Two bytes of one file.
class RecordLocks final : public FileLocks {
 protected:
  Status open(const Peer& peer) override {
    auto fd = open_lock_file(peer.word);
    if (!fd) return fd.error();
    file_ = std::move(*fd);
    return Done{};
  }
  Status lock(int which) override { return change(which, F_WRLCK); }
  Status unlock(int which) override { return change(which, F_UNLCK); }

 private:
  Status change(int which, short type) {
    struct flock wanted {};
    wanted.l_type = type;
    wanted.l_whence = SEEK_SET;
    wanted.l_start = which;
    wanted.l_len = 1;
    if (::fcntl(file_.get(), F_SETLKW, &wanted) != 0) return errno_error("fcntl F_SETLKW");
    return Done{};
  }
  Fd file_;
};

}  // namespace

std::unique_ptr<Mechanism> make_lock_mechanism(std::string_view name) {
  if (name == "flock") return std::make_unique<Flock>();
  if (name == "record-lock") return std::make_unique<RecordLocks>();
  return nullptr;
}

}  // namespace swapd::bench
