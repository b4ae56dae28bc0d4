// Candidates for the next word on swapctl's command line, for the shells' completion.
//
// The shells' own parts (completions/) are a few lines each: they hand over the words and show what comes back. What
// there is to say comes from the command line's own description, so no option is missing there.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace swapd::cli {

struct Candidate {
  std::string word;
  std::string what;  // one line; may be empty
  bool operator==(const Candidate&) const = default;
};

struct Completion {
  enum class Rest { none, file, command } rest = Rest::none;  // what the shell itself completes
  std::size_t command_at = 0;                                 // command: the place of its first word
  std::vector<Candidate> candidates;                          // that begin like the last word
};

// Words that only swapd, or the machine, knows; asked where they are needed.
struct Sources {
  std::function<std::vector<Candidate>()> managed;    // processes
  std::function<std::vector<Candidate>()> processes;  // that could be managed
  std::function<std::vector<Candidate>()> classes;
};

// words: those after the program's name, up to the one that is to be completed, which may be empty.
[[nodiscard]] Completion complete(const CLI::App& app, const std::vector<std::string>& words, const Sources& sources);

// For the shells: a line each, "WORD" or "WORD<tab>WHAT"; or ":file", or ":command N".
void print(std::ostream& out, const Completion& completion);

// As swapd at this socket, and /proc, have it; nothing if there is no answer.
[[nodiscard]] Sources live_sources(const std::string& socket);

}  // namespace swapd::cli
