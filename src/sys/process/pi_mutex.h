// A mutex with priority inheritance (pthread_mutexattr_setprotocol(3)): the real-time engine thread shares a few short
// critical sections with ordinary threads, and must not itself suffer what swapd removes.
#pragma once

#include <pthread.h>

namespace swapd::sys {

class PiMutex {
 public:
  PiMutex() {
    pthread_mutexattr_t attr;
    ::pthread_mutexattr_init(&attr);
    ::pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
    ::pthread_mutex_init(&mutex_, &attr);
    ::pthread_mutexattr_destroy(&attr);
  }
  PiMutex(const PiMutex&) = delete;
  PiMutex& operator=(const PiMutex&) = delete;
  ~PiMutex() { ::pthread_mutex_destroy(&mutex_); }

  void lock() { ::pthread_mutex_lock(&mutex_); }
  [[nodiscard]] bool try_lock() { return ::pthread_mutex_trylock(&mutex_) == 0; }
  void unlock() { ::pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_;
};

}  // namespace swapd::sys
