// The command line: what is understood, what is refused, and with which exit status.
#include "cli/app.h"

#include <gmock/gmock.h>

#include <sstream>
#include <string>
#include <vector>

#include "cli/verbs/verbs.h"

namespace swapd::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

struct Outcome {
  int status;
  std::string out, err;
};

Outcome swapctl(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "swapctl");
  std::ostringstream out;
  std::ostringstream err;
  const int status = run_app(static_cast<int>(arguments.size()), arguments.data(), out, err);
  return {status, out.str(), err.str()};
}

TEST(App, HelpTeachesWithExamples) {
  const Outcome help = swapctl({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_EQ(help.err, "");
  EXPECT_THAT(help.out, HasSubstr("swapctl run --fifo 50 -- psql"));
  for (const Verb& verb : verbs()) {
    EXPECT_THAT(help.out, HasSubstr(verb.summary));
    const Outcome own = swapctl({verb.name, "--help"});
    EXPECT_EQ(own.status, 0) << verb.name;
    EXPECT_THAT(own.out, HasSubstr(std::string("swapctl ") + verb.name)) << "the usage line of " << verb.name;
  }
  EXPECT_THAT(swapctl({"--version"}).out, StartsWith("swapctl "));
}

TEST(App, TheUsersMistakesAreOneLineAndStatusTwo) {
  const std::vector<std::vector<const char*>> mistakes = {
      {},
      {"nosuch"},
      {"--nosuch"},
      {"--socket"},
      {"why"},
      {"why", "0"},
      {"why", "-1"},
      {"why", "12x"},
      {"why", "4294967296"},
      {"why", "99999999999999999999"},
      {"status", "surplus"},
      {"set", "1"},
      {"set", "1", "--nice", "20"},
      {"set", "1", "--fifo", "0"},
      {"set", "1", "--rr", "93"},
      {"run", "--fifo", "95", "--", "true"},
      {"set", "1", "--nice", "1", "--other"},
      {"graph", "--format", "svg"},
      {"events", "--count", "0"},
      {"run"},
      {"run", "--"},
      {"run", "--nosuch", "true"},
      {"run", "--fifo", "1", "--rr", "1", "true"},
      {"run", "--observe", "eyes", "true"},
      {"--socket", "", "status"},
  };
  for (const auto& mistake : mistakes) {
    std::string text;
    for (const char* word : mistake) text += std::string(word) + " ";
    const Outcome outcome = swapctl(mistake);
    EXPECT_EQ(outcome.status, 2) << text;
    EXPECT_EQ(outcome.out, "") << text;
    EXPECT_THAT(outcome.err, StartsWith("swapctl: ")) << text;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << text << outcome.err;
  }
}

TEST(App, NoDaemonIsAFailureThatSaysWhatToDo) {
  const Outcome outcome = swapctl({"--socket", "/nonexistent/swapd.sock", "status"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "swapctl: no swapd answers at /nonexistent/swapd.sock: start it, or give --socket PATH\n");
  EXPECT_EQ(swapctl({"status", "--socket", "/nonexistent/swapd.sock"}).err, outcome.err);
  ::setenv("SWAPD_SOCKET", "/nonexistent/other.sock", 1);
  EXPECT_THAT(swapctl({"ps"}).err, HasSubstr("/nonexistent/other.sock"));
  EXPECT_EQ(swapctl({"--socket", "/nonexistent/swapd.sock", "status"}).err, outcome.err);
  ::unsetenv("SWAPD_SOCKET");
}

// The options of the program are its own, wherever ours end.
TEST(App, RunLeavesTheProgramsOptionsAlone) {
  for (const std::vector<const char*>& line :
       {std::vector<const char*>{"run", "--nice", "0", "/nonexistent/x", "--socket", "/y", "--help"},
        {"run", "--nice=0", "--", "/nonexistent/x", "--fifo", "7"},
        {"--socket", "/nonexistent/s", "run", "--class", "run", "/nonexistent/x", "-v"},
        {"run", "--socket", "/nonexistent/s", "/nonexistent/x", "--", "--json"}}) {
    const Outcome outcome = swapctl(line);
    EXPECT_EQ(outcome.status, 127);
    EXPECT_EQ(outcome.err, "swapctl: no program /nonexistent/x\n");
  }
}

TEST(App, RunLooksForTheProgramBeforeItLooksForSwapd) {
  EXPECT_EQ(swapctl({"run", "--socket", "/nonexistent/s", "no-such-program-anywhere"}).status, 127);
  EXPECT_EQ(swapctl({"run", "--socket", "/nonexistent/s", "/etc/passwd"}).status, 126);
  EXPECT_EQ(swapctl({"run", "--socket", "/nonexistent/s", "/"}).status, 126);
  const Outcome found = swapctl({"run", "--socket", "/nonexistent/s", "true"});
  EXPECT_EQ(found.status, 1);
  EXPECT_THAT(found.err, EndsWith("give --socket PATH\n"));
}

}  // namespace
}  // namespace swapd::cli
