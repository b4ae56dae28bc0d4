#include "sys/bpf/bpf_pieces.h"

#include <linux/bpf.h>

#include <utility>

namespace swapd::sys {
namespace {

constexpr std::string_view names_program = "prog '";

std::vector<std::string>& refused_names() {
  static std::vector<std::string> names;
  return names;
}

// Ends before it has returned anything, which no verifier takes.
void spoil(bpf_program* program) {
  const std::span before(bpf_program__insns(program), bpf_program__insn_cnt(program));
  std::vector<bpf_insn> insns(before.begin(), before.end());
  insns.front() = {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0};
  (void)bpf_program__set_insns(program, insns.data(), insns.size());
}

}  // namespace

bool left_out(std::span<const Refusal> refusals, std::string_view program) {
  return std::ranges::any_of(refusals, [&](const Refusal& refusal) {
    return std::ranges::find(refusal.programs, program) != refusal.programs.end();
  });
}

std::string_view program_of(std::string_view warning) {
  const auto at = warning.find(names_program);
  if (at == std::string_view::npos) return {};
  warning.remove_prefix(at + names_program.size());
  return warning.substr(0, warning.find('\''));
}

std::string refusal_of(const Error& error) {
  const auto at = error.context().find(names_program);
  return at == std::string::npos ? error.text() : error.context().substr(at);
}

std::string_view verifiers_objection(std::string_view log) {
  std::string_view last;
  while (!log.empty()) {
    std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(log.size(), line.size() + 1));
    if (line.starts_with("processed ") || line.starts_with("-- END")) break;
    line = line.substr(0, line.find_last_not_of(' ') + 1);
    if (!line.empty() && !line.starts_with("-- BEGIN")) last = line;
  }
  return last;
}

void prepare_load(bpf_object* object, std::span<const Refusal> refusals) {
  const std::string prefix = std::string(bpf_object__name(object)) + ".";
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object) {
    const std::string name = bpf_program__name(program);
    if (left_out(refusals, name)) bpf_program__set_autoload(program, false);
    if (is_refused(prefix + name)) spoil(program);
  }
}

void refuse_programs(std::vector<std::string> names) { refused_names() = std::move(names); }
bool is_refused(std::string_view name) { return std::ranges::find(refused_names(), name) != refused_names().end(); }

}  // namespace swapd::sys
