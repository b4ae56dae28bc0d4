#include "sys/bpf/kernel_offsets.h"

#include <bpf/btf.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace swapd::sys {
namespace {

using Btf = std::unique_ptr<btf, decltype([](btf* types) { btf__free(types); })>;

std::optional<std::uint64_t> place_of(const btf* types, const btf_type* section, std::string_view name) {
  const btf_var_secinfo* variables = btf_var_secinfos(section);
  for (std::uint32_t i = 0; i < btf_vlen(section); ++i) {
    const btf_type* variable = btf__type_by_id(types, variables[i].type);
    if (variable != nullptr && name == btf__name_by_offset(types, variable->name_off)) return variables[i].offset;
  }
  return std::nullopt;
}

bool has_member(const btf* types, const char* structure, std::string_view name) {
  const auto id = btf__find_by_name_kind(types, structure, BTF_KIND_STRUCT);
  if (id < 0) return false;
  const btf_type* type = btf__type_by_id(types, static_cast<std::uint32_t>(id));
  const std::span members(btf_members(type), btf_vlen(type));
  return std::ranges::any_of(members,
                             [&](const btf_member& one) { return name == btf__name_by_offset(types, one.name_off); });
}

bool runs_softirqs(std::string_view symbol) {
  return symbol == "do_softirq" || symbol.starts_with("do_softirq.") || symbol == "__local_bh_enable_ip";
}

}  // namespace

Result<KernelPlaces> kernel_places(const std::string& path) {
  const Btf types(btf__parse(path.c_str(), nullptr));
  if (types == nullptr) return errno_error("reading BTF from " + path);
  const auto id = btf__find_by_name_kind(types.get(), ".data..percpu", BTF_KIND_DATASEC);
  if (id < 0) return Error(ENOTSUP, "finding the per-CPU variables in " + path);
  const btf_type* section = btf__type_by_id(types.get(), static_cast<std::uint32_t>(id));
  KernelPlaces places;
  const char* missing = nullptr;
  const auto find = [&](const char* name, std::uint64_t& place) {
    const auto found = place_of(types.get(), section, name);
    if (!found) missing = name;
    place = found.value_or(0);
  };
  find("runqueues", places.runqueues);
  if (const auto hot = place_of(types.get(), section, "pcpu_hot")) {
    places.pcpu_hot = *hot;
  } else {
    find("__preempt_count", places.preempt_count);
    find("hardirq_stack_ptr", places.hardirq_stack_ptr);
    find("hardirq_stack_inuse", places.hardirq_stack_inuse);
  }
  if (missing != nullptr) return Error(ENOTSUP, std::string("finding the per-CPU variable ") + missing);
  if (has_member(types.get(), "softnet_data", "in_net_rx_action"))
    places.softnet_data = place_of(types.get(), section, "softnet_data").value_or(0);
  places.rdonly_cast = btf__find_by_name_kind(types.get(), "bpf_rdonly_cast", BTF_KIND_FUNC) > 0;
  return places;
}

// A line is "ffffffff81360bb0 T do_softirq", with "\t[module]" for modules, which come last. Sorted by address.
SoftirqCode softirq_code(std::istream& kallsyms) {
  SoftirqCode parts;
  auto next = parts.begin();
  bool open = false;
  std::string line;
  while (std::getline(kallsyms, line)) {
    if (line.size() < 20 || line[16] != ' ' || line[18] != ' ') continue;
    const std::string_view symbol = std::string_view(line).substr(19);
    const bool wanted = runs_softirqs(symbol);
    if (!open && !wanted) continue;
    const std::uint64_t address = std::strtoull(line.c_str(), nullptr, 16);
    if (address == 0) return {};
    if (open && address > next->first) {
      next->end = address;
      open = false;
      if (++next == parts.end()) break;
    }
    if (wanted && !open) {
      next->first = address;
      open = true;
    }
  }
  if (open) *next = {};
  return parts;
}

}  // namespace swapd::sys
