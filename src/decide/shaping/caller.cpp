#include "decide/shaping/caller.h"

#include <algorithm>

namespace swapd::decide {
namespace {

constexpr std::uint64_t max_joined = 8;
constexpr Duration max_unsettled = std::chrono::milliseconds(10);

Tokens tokens_of(std::uint64_t count) {
  return static_cast<Tokens>(std::min<std::uint64_t>(count, TokenBucket::max_burst));
}

// Grows by what goes beyond the calls, shrinks by what they make up for; what goes beyond `most` is the answer.
Tokens beyond(Tokens& besides, Tokens more, Tokens most) {
  besides = std::max(besides + more, Tokens{0});
  const Tokens over = std::max(besides - most, Tokens{0});
  besides -= over;
  return over;
}

}  // namespace

bool may_join_last(const Caller& caller, const ClassView& view, Time now) {
  if (!caller.call || caller.view.get() != &view || view.limits.freezes || caller.last.count != 1) return false;
  const CallKind::Amount amount = caller.last.kind.amount;
  if (amount != CallKind::Amount::bytes && amount != CallKind::Amount::entry) return false;
  if (caller.last.network(0) && caller.last.reads(0)) return false;
  return now - caller.settled <= max_unsettled && caller.call->calls < max_joined;
}

// Transfer by transfer.
CallShare share_of_call(const Caller& caller, ShapeMode mode, const CallerMoved& moved) {
  CallShare out;
  if (!caller.call || !caller.moves) return out;
  const WantedCall& call = caller.last;
  for (std::size_t i = 0; i < call.count; ++i) {
    const bool reads = call.reads(i);
    const Tokens disk = tokens_of(reads ? moved.disk.read_bytes : moved.disk.written_bytes);
    Tokens chars = tokens_of(reads ? moved.disk.read_chars : moved.disk.written_chars);
    if (call.kind.told == CallKind::Told::by_none)
      chars = call.kind.amount == CallKind::Amount::submission ? call.transfers.at(i).cost : call.asked;
    if (call.kind.told == CallKind::Told::by_disk) chars = disk;
    Tokens& bytes = out.moved.bytes.at(i);
    if (call.network(i)) {
      if (moved.traffic_is_counted)
        bytes = tokens_of(reads ? moved.traffic.received : moved.traffic.sent);
      else if (call.kind.amount != CallKind::Amount::ring)
        bytes = chars;
      continue;
    }
    if (!call.kind.moves_bytes(mode)) continue;
    bytes = call.kind.as_the_disk(mode) ? disk : chars;
    (reads ? out.read : out.written) += bytes;
    if (i == 0 && reads) out.moved.cached = std::max(chars - disk, Tokens{0});
  }
  return out;
}

MovedWithoutCall moved_without_call(const Caller& caller, ShapeMode mode, const CallerMoved& moved,
                                    const CallShare& call) {
  MovedWithoutCall out{.ahead = caller.ahead};
  bool reads = false, writes = false;
  if (caller.call) {
    for (std::size_t i = 0; i < caller.last.count; ++i) {
      if (caller.last.network(i))
        out.has_network = true;
      else if (caller.moves && caller.last.kind.moves_bytes(mode))
        (caller.last.reads(i) ? reads : writes) = true;
    }
  }
  const bool as_the_disk = mode == ShapeMode::device || (caller.moves && caller.last.kind.as_the_disk(mode));
  out.read = tokens_of(moved.disk.read_bytes);
  out.written = tokens_of(moved.disk.written_bytes);
  if (reads) out.read = beyond(out.ahead, out.read - call.read, moves_besides);
  const auto calls = caller.call ? static_cast<Tokens>(caller.call->calls) : 1;
  if (writes) out.written = as_the_disk ? 0 : std::max(out.written - call.written - calls * moves_besides, Tokens{0});
  out.of_call = (out.read == 0 || reads) && (out.written == 0 || writes) && moved.disk_of_call;
  return out;
}

MovedWithoutCall may_owe_pages(const Caller& caller, ShapeMode mode, const CallerMoved& moved) {
  return moved_without_call(caller, mode, moved, share_of_call(caller, mode, moved));
}

}  // namespace swapd::decide
