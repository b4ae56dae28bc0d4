// JSON files of the state directory: replaced as a whole, versioned, of one boot; a damaged one is set aside.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "replay/fields.h"

namespace swapd::daemon {

[[nodiscard]] Status write_state(const std::string& path, const nlohmann::json& content);
// The file as a whole: a reader sees the old text or the new.
[[nodiscard]] Status replace_file(const std::string& path, const std::string& text);
// `take` gets the content, and what it found wrong with a field is the mistake's; it gets nothing where there is no
// file, or one of another boot. EBADMSG: it is damaged, or of another version; the text says which file and why.
[[nodiscard]] Status read_state(const std::string& path, int version, const std::string& boot_id,
                                const std::function<void(replay::Fields&, replay::Mistake&)>& take);
// As PATH.damaged.
void set_aside(const std::string& path);

}  // namespace swapd::daemon
