// gamemode.ini (GameMode's example/gamemode.ini): what every program that calls GameMode gets while it runs. A rule
// gives the same to the programs that the whitelist names.
#include <algorithm>

#include "policy/import/imported.h"

namespace swapd::policy {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

constexpr std::string_view needs_gamemode = "swapd sets priorities alone";

class GamemodeImporter {
 public:
  void value(const SourcePlace& place, std::string_view section, std::string_view key, std::string_view value) {
    if (section == "general" && key == "renice") {
      const auto by = whole_number(value);
      if (!by || *by < 0 || *by > 20) return out_.leave_out(place, "renice", "it must be 0 to 20");
      if (*by > 0) settings_.nice = -*by;
    } else if (section == "general" && key == "ioprio") {
      const auto level = whole_number(value);
      if (value == "off" || value == "default") return;
      if (!level || *level < 0 || *level > 7) return out_.leave_out(place, "ioprio", "it must be 0 to 7, or off");
      settings_.io_class = IoClass::best_effort;
      settings_.io_priority = level;
    } else if (section == "general" && key == "softrealtime") {
      if (value != "off") out_.leave_out(place, "softrealtime", "it is SCHED_ISO, which Linux does not have");
    } else if (section == "filter" && key == "whitelist") {
      programs_.push_back({.key = "comm", .glob = comm_of(value), .place = place});
    } else if (section == "filter" && key == "blacklist") {
      left_alone_.push_back({.key = "comm", .glob = comm_of(value), .place = place});
    } else {
      out_.leave_out(place, std::string(section) + "." + std::string(key), std::string(needs_gamemode));
    }
  }

  Imported finish(const SourcePlace& end) {
    // GameMode itself sets these if a configuration says nothing.
    if (!settings_.io_class) settings_.io_class = IoClass::best_effort;
    if (!settings_.io_priority) settings_.io_priority = 0;
    if (!left_alone_.empty())
      out_.rules.push_back(
          {.name = "not-games", .class_name = "", .settings = {}, .manage = false, .patterns = left_alone_});
    if (!programs_.empty())
      out_.rules.push_back(
          {.name = "games", .class_name = "games", .settings = settings_, .manage = true, .patterns = programs_});
    else
      out_.leave_out(end, "[general]",
                     "it names no program: GameMode's programs ask for it themselves; name them in a [match.NAME]");
    return std::move(out_);
  }

 private:
  Imported out_;
  ProgramSettings settings_;
  std::vector<ImportedPattern> programs_, left_alone_;
};

}  // namespace

Result<Imported> import_gamemode(std::span<const SourceFile> files) {
  GamemodeImporter importer;
  SourcePlace place;
  for (const SourceFile& file : files) {
    std::string section;
    place = {file.name, 0};
    for (std::size_t at = 0; at < file.text.size();) {
      const std::size_t end = std::min(file.text.find('\n', at), file.text.size());
      const std::string_view line = trimmed(std::string_view(file.text).substr(at, end - at));
      at = end + 1;
      ++place.line;
      if (line.empty() || line.front() == ';' || line.front() == '#') continue;
      if (line.front() == '[' && line.back() == ']') {
        section = line.substr(1, line.size() - 2);
        continue;
      }
      const std::size_t equals = line.find('=');
      if (equals == std::string_view::npos || section.empty())
        return Error(EINVAL, file.name + ":" + std::to_string(place.line) +
                                 ": neither a [section] nor 'key=value': not a gamemode.ini");
      importer.value(place, section, trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1)));
    }
  }
  return importer.finish(place);
}

}  // namespace swapd::policy
