// Completion: the words that may stand next on a command line, from the command line's own description.
#include "cli/complete/complete.h"

#include <gmock/gmock.h>

#include <sstream>

#include "cli/verbs/verbs.h"

namespace swapd::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

class Complete : public testing::Test {
 protected:
  Complete() {
    app_.add_option("--socket", context_.socket)->type_name("PATH");
    for (const Verb& verb : verbs())
      actions_.push_back(verb.declare(*app_.add_subcommand(verb.name, verb.summary), context_));
  }
  Completion at(const std::vector<std::string>& words) { return complete(app_, words, sources_); }
  std::vector<std::string> words(const std::vector<std::string>& before) {
    std::vector<std::string> found;
    for (const Candidate& one : at(before).candidates) found.push_back(one.word);
    return found;
  }
  CLI::App app_;
  Context context_;
  std::vector<Action> actions_;
  Sources sources_{.managed =
                       [] {
                         return std::vector<Candidate>{{"17", "psql"}, {"23", "postgres"}};
                       },
                   .processes =
                       [] {
                         return std::vector<Candidate>{{"17", "psql"}, {"99", "sshd"}};
                       },
                   .classes =
                       [] {
                         return std::vector<Candidate>{{"default", ""}, {"desktop", ""}, {"batch", ""}};
                       }};
};

TEST_F(Complete, Verbs) {
  EXPECT_THAT(words({"r"}), ElementsAre("run", "release", "restart", "resume", "record"));
  EXPECT_EQ(words({""}).size(), verbs().size());
  EXPECT_THAT(words({"policy", ""}), ElementsAre("show", "check", "import"));
  EXPECT_THAT(words({"policy", "import", "s"}), ElementsAre("system76"));
  EXPECT_THAT(words({"nonsense", "x"}), IsEmpty());
}

TEST_F(Complete, OptionsOfTheVerbAndOfAll) {
  EXPECT_THAT(words({"enroll", "--tr"}), ElementsAre("--tree"));
  EXPECT_THAT(words({"enroll", "--"}), Contains("--socket"));
  EXPECT_THAT(words({"enroll", "--", "--tr"}), IsEmpty()) << "after -- there are none";
}

TEST_F(Complete, ValuesOfOptions) {
  EXPECT_THAT(words({"run", "--class", "de"}), ElementsAre("default", "desktop"));
  EXPECT_THAT(words({"run", "--observe", ""}), ElementsAre("auto", "bpf", "seccomp"));
  EXPECT_THAT(words({"graph", "--format", "d"}), ElementsAre("dot"));
  EXPECT_EQ(at({"--socket", ""}).rest, Completion::Rest::file);
  EXPECT_THAT(words({"run", "--nice", ""}), IsEmpty());
}

TEST_F(Complete, Processes) {
  EXPECT_EQ(at({"why", ""}).candidates, (std::vector<Candidate>{{"17", "psql"}, {"23", "postgres"}}));
  EXPECT_THAT(words({"--socket", "/x", "set", "1"}), ElementsAre("17"));
  EXPECT_THAT(words({"enroll", ""}), ElementsAre("17", "99")) << "those that are not managed, too";
  EXPECT_THAT(words({"why", "17", ""}), IsEmpty()) << "one is enough";
}

TEST_F(Complete, FilesAndCommandsAreTheShells) {
  EXPECT_EQ(at({"record", ""}).rest, Completion::Rest::file);
  EXPECT_EQ(at({"policy", "check", "/e"}).rest, Completion::Rest::file);
  EXPECT_EQ(at({"policy", "import", "cgrules", "/e"}).rest, Completion::Rest::file);
  EXPECT_EQ(at({"run", "ps"}).command_at, 1U);
  EXPECT_EQ(at({"run", "--fifo", "50", "--", "psql", "-"}).command_at, 4U);
  EXPECT_EQ(at({"run", "--fifo", "50", "psql", "--cl"}).command_at, 3U);
  EXPECT_EQ(at({"run", "--cl"}).rest, Completion::Rest::none);
}

TEST_F(Complete, IsPrintedALineEach) {
  std::ostringstream out;
  print(out, at({"why", ""}));
  print(out, at({"run", "x"}));
  print(out, at({"record", ""}));
  EXPECT_EQ(out.str(), "17\tpsql\n23\tpostgres\n:command 1\n:file\n");
}

}  // namespace
}  // namespace swapd::cli
