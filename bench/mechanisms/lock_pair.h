// How a client and a server hand a lock over.
//
// With a single lock the client could take it again before the server has run. So there are two, and the server takes
// the next before it leaves the one it holds; the client takes them in the same order and leaves each at once. A client
// that keeps up therefore always finds the lock it wants held by the computing server. Each lock guards an answer of
// its own.
#pragma once

#include <utility>

#include "mechanisms/mechanism.h"

namespace swapd::bench {

class LockPair : public Mechanism {
 public:
  Status attach_client(const Peer& peer) override {
    shared_ = peer.shared;
    return open(peer);
  }
  Status attach_server(const Peer& peer) override {
    shared_ = peer.shared;
    if (Status opened = open(peer); !opened) return opened;
    return lock(current_);
  }
  Status serve(const Computation& compute) override {
    compute();
    stamp(shared_->answers[current_].data());
    const int next = 1 - current_;
    if (Status locked = lock(next); !locked) return locked;
    const int done = std::exchange(current_, next);
    return unlock(done);
  }
  Status await() override {
    if (Status locked = lock(current_); !locked) return locked;
    Status good = check(shared_->answers[current_].data());
    if (Status unlocked = unlock(current_); !unlocked) return unlocked;
    current_ = 1 - current_;
    return good;
  }

 protected:
  virtual Status open(const Peer& peer) = 0;
  virtual Status lock(int which) = 0;
  virtual Status unlock(int which) = 0;

 private:
  Shared* shared_ = nullptr;
  int current_ = 0;
};

}  // namespace swapd::bench
