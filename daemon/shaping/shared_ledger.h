// The ledger of shaped I/O with its lock. Receivers' threads, the delaying thread, the thread that looks at mapped
// pages, the engine and the control thread meet here; the lock is held for arithmetic alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "decide/shaping/ledger.h"
#include "sys/process/pi_mutex.h"

namespace swapd::daemon {

class SharedLedger {
 public:
  explicit SharedLedger(const decide::Ledger::Options& options) : ledger_(options) {}
  SharedLedger(const SharedLedger&) = delete;
  SharedLedger& operator=(const SharedLedger&) = delete;

  // The lock, for as long as this lives.
  class Locked {
   public:
    explicit Locked(const SharedLedger& shared) : lock_(shared.mutex_), shared_(shared) {}
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
    ~Locked() { shared_.publish(); }
    decide::Ledger* operator->() const { return &shared_.ledger_; }

   private:
    std::lock_guard<sys::PiMutex> lock_;
    const SharedLedger& shared_;
  };
  // For one expression: `ledger->classes().leave(tgid, now)`.
  Locked operator->() const { return Locked(*this); }
  // For several.
  [[nodiscard]] Locked lock() const { return Locked(*this); }

  // Without the lock, as of when it was last given back.
  [[nodiscard]] std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  [[nodiscard]] std::size_t held_now() const { return held_.load(std::memory_order_relaxed); }

 private:
  void publish() const {
    const std::uint64_t generation = ledger_.classes().generation();
    if (generation_.load(std::memory_order_relaxed) != generation)
      generation_.store(generation, std::memory_order_release);
    const std::size_t held = ledger_.held().count();
    if (held_.load(std::memory_order_relaxed) != held) held_.store(held, std::memory_order_relaxed);
  }

  mutable sys::PiMutex mutex_;
  mutable decide::Ledger ledger_;
  mutable std::atomic<std::uint64_t> generation_{1};
  mutable std::atomic<std::size_t> held_{0};
};

}  // namespace swapd::daemon
