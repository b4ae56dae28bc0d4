// Loading kernel programs piece by piece: what the kernel refuses is left out, and the rest is loaded without it.
#pragma once

#include <bpf/libbpf.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace swapd::sys {

// Programs that are of use only together. What they do is done in another way without them.
using BpfPiece = std::span<const std::string_view>;

struct Refusal {
  BpfPiece programs;
  Error error;
};
[[nodiscard]] bool left_out(std::span<const Refusal> refusals, std::string_view program);

// The program that libbpf's warning is about: "prog 'on_send': failed to find …". Empty: it is about none.
[[nodiscard]] std::string_view program_of(std::string_view warning);
// An error of loading or attaching, without what was being done: from the program's name on, where there is one.
[[nodiscard]] std::string refusal_of(const Error& error);
// The verifier's objection at the end of its log: the line before the statistics, without a tail of spaces.
[[nodiscard]] std::string_view verifiers_objection(std::string_view log);

// Leaves out what the refusals name, as the object is loaded; and spoils what refuse_programs() names.
void prepare_load(bpf_object* object, std::span<const Refusal> refusals);

// For tests: the kernel refuses these programs of this process's, each OBJECT.PROGRAM ("netio.on_send"): they are
// spoilt, so that the refusal is the verifier's own. Before the first of them is loaded.
void refuse_programs(std::vector<std::string> names);
[[nodiscard]] bool is_refused(std::string_view name);

// Calls load(refusals) until it succeeds, or fails for what is in none of the pieces; each time with one more refusal.
// load: Result<…>(const std::vector<Refusal>&), whose errors are FirstWarning's.
template <typename Load>
auto load_in_pieces(std::span<const BpfPiece> pieces, std::vector<Refusal>& refusals, const Load& load) {
  for (;;) {
    auto loaded = load(std::as_const(refusals));
    if (loaded) return loaded;
    const std::string_view refused = program_of(loaded.error().context());
    const auto piece =
        std::ranges::find_if(pieces, [&](BpfPiece one) { return std::ranges::find(one, refused) != one.end(); });
    if (piece == pieces.end() || left_out(refusals, refused)) return loaded;
    refusals.push_back({*piece, loaded.error()});
  }
}

}  // namespace swapd::sys
