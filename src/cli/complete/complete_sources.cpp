// Candidates for completion, from swapd and from the machine.
#include <nlohmann/json.hpp>

#include "cli/client.h"
#include "cli/complete/complete.h"
#include "cli/failure.h"
#include "cli/words.h"
#include "sys/procfs/procfs.h"

namespace swapd::cli {
namespace {

// Without an answer, or with one of another version, nothing is shown: the user did not ask for a message.
template <typename Read>
std::vector<Candidate> from_swapd(const std::string& socket, Result<std::string> (Client::*ask)(), Read read) {
  std::vector<Candidate> found;
  Result<Client> client = Client::connect(socket);
  if (!client) return found;
  const Result<std::string> text = ((*client).*ask)();
  if (!text) return found;
  try {
    read(Json::parse(*text), found);
  } catch (const Json::exception&) {
    found.clear();
  }
  return found;
}

std::vector<Candidate> managed(const std::string& socket) {
  return from_swapd(socket, &Client::processes, [](const Json& answer, std::vector<Candidate>& found) {
    for (const Json& thread : answer.at("threads"))
      if (thread.at("pid") == thread.at("tid"))
        found.push_back({std::to_string(thread.at("pid").get<int>()), printable(thread.at("comm").get<std::string>())});
  });
}

std::vector<Candidate> classes(const std::string& socket) {
  return from_swapd(socket, &Client::classes, [](const Json& answer, std::vector<Candidate>& found) {
    for (const Json& one : answer.at("classes")) found.push_back({printable(one.at("name").get<std::string>()), ""});
  });
}

std::vector<Candidate> processes() {
  const sys::Procfs procfs;
  std::vector<Candidate> found;
  for (const pid_t pid : procfs.processes()) {
    const auto stat = procfs.stat(pid);
    if (stat && !stat->kernel && pid != 1)
      found.push_back({std::to_string(pid), printable(procfs.comm(pid).value_or(""))});
  }
  return found;
}

}  // namespace

Sources live_sources(const std::string& socket) {
  return {.managed = [socket] { return managed(socket); },
          .processes = processes,
          .classes = [socket] { return classes(socket); }};
}

}  // namespace swapd::cli
