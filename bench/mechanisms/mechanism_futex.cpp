// pthread objects that two processes share: mutexes, condition variables, and mutexes with priority inheritance. What
// the client waits in is futex(2) on a word of the shared memory.
//
// Mutexes are handed over in pairs, as all locks. A condition variable has a mutex and a flag: the server waits until
// the last answer was taken, as with the semaphores, so that the client waits for one whole computation. Each signals
// after it has left the mutex: signalled within, the more important client would wake only to wait for the mutex.
#include <cerrno>

#include "mechanisms/lock_pair.h"
#include "mechanisms/pthread_objects.h"

namespace swapd::bench {

namespace {

Status done_or(int error, const char* what) {
  if (error == 0) return Done{};
  return Error(error, what);
}

SyncObjects& objects_of(const Peer& peer) { return peer.objects != nullptr ? *peer.objects : peer.shared->sync; }

class Mutexes final : public LockPair {
 public:
  explicit Mutexes(bool inherits) : inherits_(inherits) {}
  Status create(Place& place) override { return make_mutexes(place.shared->sync, {true, inherits_}); }

 protected:
  Status open(const Peer& peer) override {
    objects_ = &objects_of(peer);
    return Done{};
  }
  Status lock(int which) override {
    return done_or(::pthread_mutex_lock(&objects_->mutexes[which]), "pthread_mutex_lock");
  }
  Status unlock(int which) override {
    return done_or(::pthread_mutex_unlock(&objects_->mutexes[which]), "pthread_mutex_unlock");
  }

 private:
  bool inherits_;
  SyncObjects* objects_ = nullptr;
};

class Conditions final : public Mechanism {
 public:
  // glibc's waits on two words in turn (pthread_cond_wait.c, groups G1 and G2).
  int warm_ups() const override { return 2; }
  Status create(Place& place) override { return make_conditions(place.shared->sync, {true, false}); }
  Status attach_client(const Peer& peer) override { return take(peer); }
  Status attach_server(const Peer& peer) override { return take(peer); }
  Status serve(const Computation& compute) override {
    if (Status waited = wait_for(false); !waited) return waited;
    compute();
    stamp(shared_->answers[0].data());
    return tell(true);
  }
  Status await() override {
    if (Status waited = wait_for(true); !waited) return waited;
    if (Status good = check(shared_->answers[0].data()); !good) return good;
    return tell(false);
  }

 private:
  Status take(const Peer& peer) {
    objects_ = &objects_of(peer);
    shared_ = peer.shared;
    return Done{};
  }
  // Waits until the flag is so.
  Status wait_for(bool full) {
    pthread_mutex_t* mutex = objects_->mutexes.data();
    if (const int error = ::pthread_mutex_lock(mutex); error != 0) return done_or(error, "pthread_mutex_lock");
    int error = 0;
    while (objects_->full != full && error == 0) error = ::pthread_cond_wait(&objects_->conditions[full], mutex);
    ::pthread_mutex_unlock(mutex);
    return done_or(error, "pthread_cond_wait");
  }
  Status tell(bool full) {
    pthread_mutex_t* mutex = objects_->mutexes.data();
    if (const int error = ::pthread_mutex_lock(mutex); error != 0) return done_or(error, "pthread_mutex_lock");
    objects_->full = full;
    ::pthread_mutex_unlock(mutex);
    return done_or(::pthread_cond_signal(&objects_->conditions[full]), "pthread_cond_signal");
  }
  SyncObjects* objects_ = nullptr;
  Shared* shared_ = nullptr;
};

}  // namespace

Status make_mutexes(SyncObjects& objects, PthreadKind kind) {
  pthread_mutexattr_t attr;
  if (const int error = ::pthread_mutexattr_init(&attr); error != 0) return done_or(error, "pthread_mutexattr_init");
  ::pthread_mutexattr_setpshared(&attr, kind.shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE);
  int error = ::pthread_mutexattr_setprotocol(&attr, kind.inherits ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
  for (pthread_mutex_t& mutex : objects.mutexes) {
    if (error == 0) error = ::pthread_mutex_init(&mutex, &attr);
  }
  ::pthread_mutexattr_destroy(&attr);
  return done_or(error, "making a mutex");
}

Status make_conditions(SyncObjects& objects, PthreadKind kind) {
  if (Status made = make_mutexes(objects, kind); !made) return made;
  pthread_condattr_t attr;
  if (const int error = ::pthread_condattr_init(&attr); error != 0) return done_or(error, "pthread_condattr_init");
  int error = ::pthread_condattr_setpshared(&attr, kind.shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE);
  for (pthread_cond_t& condition : objects.conditions) {
    if (error == 0) error = ::pthread_cond_init(&condition, &attr);
  }
  ::pthread_condattr_destroy(&attr);
  return done_or(error, "making a condition variable");
}

std::unique_ptr<Mechanism> make_futex_mechanism(std::string_view name) {
  if (name == "mutex") return std::make_unique<Mutexes>(false);
  if (name == "pi-mutex") return std::make_unique<Mutexes>(true);
  if (name == "condvar") return std::make_unique<Conditions>();
  return nullptr;
}

}  // namespace swapd::bench
