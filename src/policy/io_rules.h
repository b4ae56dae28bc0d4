// The tables [class.NAME.io] and below: limits of disks and network links.
#pragma once

#include <string>

#include "policy/policy.h"
#include "policy/schema.h"

namespace swapd::policy {

// where: the table's name ("class.backup.io").
[[nodiscard]] Status read_io(const toml::table& table, const std::string& where, IoRules& rules,
                             const Complaint& complaint);

}  // namespace swapd::policy
