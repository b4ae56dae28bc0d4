// Locks: flock and record locks.
//
// With a single lock the client could take it again before the server has run. So there are two, and the server takes
// the next before it leaves the one it holds; the client takes them in the same order and leaves each at once. A client
// that keeps up therefore always finds the lock it wants held by the computing server. Each lock guards an answer of
// its own.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>

#include "mechanism.h"

namespace swapd::bench {

namespace {

class Locks : public Mechanism {
 public:
  Status create(Place& place) override {
    place.client.word = place.server.word = place.dir + "/lock";
    return Done{};
  }
  Status attach_client(const Peer& peer) override {
    shared_ = peer.shared;
    return open_files(peer.word);
  }
  Status attach_server(const Peer& peer) override {
    shared_ = peer.shared;
    if (const auto opened = open_files(peer.word); !opened) return opened;
    return lock(current_);
  }
  Status serve(const Computation& compute) override {
    compute();
    stamp(shared_->answers[current_].data());
    const int next = 1 - current_;
    if (const auto locked = lock(next); !locked) return locked;
    const int done = std::exchange(current_, next);
    return unlock(done);
  }
  Status await() override {
    if (const auto locked = lock(current_); !locked) return locked;
    const Status good = check(shared_->answers[current_].data());
    if (const auto unlocked = unlock(current_); !unlocked) return unlocked;
    current_ = 1 - current_;
    return good;
  }

 protected:
  virtual Status open_files(const std::string& name) = 0;
  virtual Status lock(int which) = 0;
  virtual Status unlock(int which) = 0;

 private:
  Shared* shared_ = nullptr;
  int current_ = 0;
};

Result<Fd> open_lock_file(const std::string& name) {
  Fd fd(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return errno_error(name);
  return fd;
}

class Flock final : public Locks {
 protected:
  Status open_files(const std::string& name) override {
    for (int i = 0; i < 2; ++i) {
      auto fd = open_lock_file(name + std::to_string(i));
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
class RecordLocks final : public Locks {
 protected:
  Status open_files(const std::string& name) override {
    auto fd = open_lock_file(name);
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
