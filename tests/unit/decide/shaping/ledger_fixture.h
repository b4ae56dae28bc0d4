// A ledger with one class, "c", and threads that make calls. Each bucket of the class brings a token a microsecond and
// holds 100,000: a class owes half a second's worth (500,000) at most, and a call may move 100,000 before it is paid.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <utility>

#include "decide/shaping/ledger.h"
#include "unit/decide/start.h"

namespace swapd::test {

class LedgerTest : public testing::Test {
 protected:
  using Caller = decide::Caller;
  using CallerMoved = decide::CallerMoved;
  using CallKind = decide::CallKind;
  using ClassLimits = decide::ClassLimits;
  using Device = decide::Device;
  using IoDirection = decide::IoDirection;
  using Ledger = decide::Ledger;
  using Limit = decide::Limit;
  using PagePayer = decide::PagePayer;
  using ShapeMode = decide::ShapeMode;
  using WantedCall = decide::WantedCall;
  using us = std::chrono::microseconds;
  using ms = std::chrono::milliseconds;
  static constexpr Tokens full = 100'000, most_owed = 500'000;
  static constexpr Device disk{Device::Kind::disk, 8ULL << 32}, other_disk{Device::Kind::disk, 9ULL << 32},
      link{Device::Kind::network, 2}, unknown_link{Device::Kind::network, 0};

  static Limit limit(Tokens rate = 1'000'000, Tokens burst = full) {
    return {.bytes = rate, .operations = {}, .burst = burst};
  }
  static ClassLimits of_disks(const Limit& both = limit()) {
    ClassLimits out;
    out.disks.both = both;
    return out;
  }
  void SetUp() override { set(of_disks()); }
  void set(const ClassLimits& limits, const std::string& name = "c", bool inherits_own = false) {
    ledger.classes().set(name, limits, inherits_own, now);
  }
  [[nodiscard]] decide::ClassViewPtr view(const std::string& name = "c") { return ledger.classes().find(name); }

  static Caller thread(pid_t tid) {
    Caller out;
    out.tid = out.tgid = tid;
    return out;
  }
  static WantedCall call(IoDirection direction, Tokens bytes, const Device& device, CallKind kind = {}) {
    WantedCall out;
    out.asked = bytes;
    out.kind = kind;
    out.add({.device = device, .direction = direction, .cost = bytes});
    return out;
  }
  static WantedCall read(Tokens bytes, const Device& device = disk, CallKind kind = {}) {
    return call(IoDirection::read, bytes, device, kind);
  }
  static WantedCall write(Tokens bytes, const Device& device = disk, CallKind kind = {}) {
    return call(IoDirection::write, bytes, device, kind);
  }
  // A read(2), a write(2) has moved so many, all of it to or from the disk.
  static CallerMoved has_read(Tokens bytes) {
    CallerMoved out;
    out.disk.read_chars = out.disk.read_bytes = static_cast<std::uint64_t>(bytes);
    return out;
  }
  static CallerMoved has_written(Tokens bytes) {
    CallerMoved out;
    out.disk.written_chars = out.disk.written_bytes = static_cast<std::uint64_t>(bytes);
    return out;
  }
  // Without a call: pages of a mapped file.
  static CallerMoved has_paged(Tokens bytes) {
    CallerMoved out;
    out.disk.read_bytes = static_cast<std::uint64_t>(bytes);
    out.paged = bytes;
    out.pages_disk = out.tree_disk = disk;
    return out;
  }

  // The thread is at its gate with this call, after it has moved that.
  Ledger::Verdict at_gate(Caller& caller, const WantedCall& want, const CallerMoved& moved = {},
                          const std::string& name = "c") {
    return ledger.settle_and_reserve(caller, view(name), moved, &want, now);
  }
  // The same with a call that is not charged.
  void settle(Caller& caller, const CallerMoved& moved, const std::string& name = "c") {
    ledger.settle_and_reserve(caller, view(name), moved, nullptr, now);
  }
  // How long from now.
  [[nodiscard]] Duration delay(const Ledger::Verdict& verdict) const { return verdict.due - now; }
  [[nodiscard]] Duration delay(const Caller& caller) { return ledger.due(*caller.call, now) - now; }
  // So that the next call waits.
  void empty_bucket() { empty_bucket_of("c"); }
  void empty_bucket_of(const std::string& name) {
    Caller greedy = thread(999);
    (void)at_gate(greedy, read(full), {}, name);
  }
  [[nodiscard]] decide::Shaping::Account account(const Device& device = disk, const std::string& name = "c") {
    for (const auto& each : ledger.classes().accounts(name, now))
      if (each.device == device) return each;
    return {};
  }
  [[nodiscard]] Tokens level(const std::string& name = "c") { return account(disk, name).both.bytes.value_or(-1); }

  Time now = start;
  Ledger ledger{{.slice = ms(100), .dry_run = false}};
};

}  // namespace swapd::test
