// libcgroup's cgrules.conf (cgrules.conf(5)): whose programs go to which control group. The group becomes a class, so
// that the class can have limits; the program stays in the group where it is.
#include <algorithm>
#include <sstream>

#include "policy/import/imported.h"

namespace swapd::policy {
namespace {

// "alice:postgres" → who, and of whose programs which.
void add(Imported& out, const SourcePlace& place, const std::string& subject, const std::string& destination) {
  const std::size_t colon = subject.find(':');
  const std::string user = subject.substr(0, colon);
  std::string program = colon == std::string::npos ? "" : subject.substr(colon + 1);
  if (user.starts_with('@'))
    return out.leave_out(place, subject, "a rule names users, not their groups: name the members in 'user'");
  if (destination.find('%') != std::string::npos)
    return out.leave_out(place, destination, "a class has one name, which does not depend on the program");
  ImportedRule rule{.name = class_name_of(destination),
                    .class_name = class_name_of(destination),
                    .settings = {},
                    .manage = true,
                    .patterns = {}};
  if (user != "*") rule.patterns.push_back({.key = "user", .glob = user, .place = place});
  if (program.starts_with('/'))
    rule.patterns.push_back({.key = "exe", .glob = program, .place = place});
  else if (!program.empty())
    rule.patterns.push_back({.key = "comm", .glob = comm_of(program), .place = place});
  if (rule.patterns.empty()) rule.patterns.push_back({.key = "user", .glob = "*", .place = place});
  out.rules.push_back(std::move(rule));
}

}  // namespace

Result<Imported> import_cgrules(std::span<const SourceFile> files) {
  Imported out;
  for (const SourceFile& file : files) {
    std::istringstream lines(file.text);
    std::string subject;
    SourcePlace place{file.name, 0};
    for (std::string line; std::getline(lines, line);) {
      ++place.line;
      std::istringstream words(line.substr(0, line.find('#')));
      std::string controllers, destination, options;
      if (!(words >> subject)) continue;
      if (!(words >> controllers >> destination))
        return Error(EINVAL, file.name + ":" + std::to_string(place.line) +
                                 ": not 'user[:program] controllers destination': not a cgrules.conf");
      // "%": the subject of the line above, in another hierarchy.
      if (subject == "%") {
        out.leave_out(place, "%", "a program has one class, which the line above says");
        continue;
      }
      if (words >> options) out.leave_out(place, "options " + options, "swapd has none for rules");
      add(out, place, subject, destination);
    }
  }
  return out;
}

}  // namespace swapd::policy
