// Containers whose runtime hands their seccomp listener over: what it says of them, and the profile that has it do so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include "enroll/oci_state.h"
#include "oci_profile.h"

namespace swapd::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;
using Json = nlohmann::ordered_json;

// --- the state ---

std::string state(const std::string& more = "", const std::string& annotations = "{}") {
  return R"({"ociVersion":"1.0.2","fds":["other","seccompFd"],"pid":4711,)" + more +
         R"("state":{"id":"web","status":"creating","pid":4711,"annotations":)" + annotations + "}}";
}

OciContainer container(const std::string& text) {
  const auto read = read_oci_state(text);
  EXPECT_TRUE(read) << read.error().text();
  EXPECT_TRUE(read && *read) << "not whole";
  return read && *read ? **read : OciContainer{};
}

TEST(OciState, NamesTheProcessTheContainerAndTheListener) {
  const OciContainer one = container(state());
  EXPECT_EQ(one.pid, 4711);
  EXPECT_EQ(one.id, "web");
  EXPECT_EQ(one.listener_at, 1U);
  EXPECT_EQ(one.class_name, "");
  EXPECT_FALSE(one.limits || one.observe);
}

TEST(OciState, ClassAndCallsAreThoseOfTheProfilesMetadata) {
  const OciContainer one = container(state(R"("metadata":"limits observe class=background",)"));
  EXPECT_EQ(one.class_name, "background");
  EXPECT_TRUE(one.limits);
  EXPECT_TRUE(one.observe);
}

TEST(OciState, AnAnnotationOfTheContainerComesFirst) {
  EXPECT_EQ(container(state(R"("metadata":"class=background",)", R"({"org.swapd1.class":"web"})")).class_name, "web");
}

TEST(OciState, IsReadOnceItIsWhole) {
  const std::string text = state();
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, text.size() / 2, text.size() - 1}) {
    const auto read = read_oci_state(text.substr(0, size));
    ASSERT_TRUE(read) << size;
    EXPECT_FALSE(*read) << size;
  }
}

TEST(OciState, ThatIsNoneIsAnErrorOfOneLine) {
  for (const char* text : {"[]", "7", "{}", R"({"pid":-1})", R"({"pid":"one"})", R"({"pid":99999999999})",
                           R"({"pid":1,"fds":["somethingElse"]})"}) {
    const auto read = read_oci_state(text);
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().text(), HasSubstr("a container's state (OCI)"));
  }
}

TEST(OciState, OfAnyShapeIsNoHarm) {
  for (const char* text : {R"({"pid":1,"state":[]})", R"({"pid":1,"state":{"annotations":7,"id":[]}})",
                           R"({"pid":1,"metadata":{}})", R"({"pid":1,"fds":7})"})
    EXPECT_EQ(container(text).pid, 1) << text;
}

// --- the profile ---

const std::vector<sys::TrapRule>& rules() {
  static const std::vector<sys::TrapRule> all = {
      {.nr = SYS_read, .condition = {}},
      {.nr = SYS_write, .condition = {}},
      {.nr = SYS_seccomp, .condition = sys::TrapRule::Condition{.arg = 1, .mask = 8, .values = {8}}},
      {.nr = SYS_io_uring_setup, .condition = {}, .refuse_with = ENOSYS}};
  return all;
}

Json profile(const OciProfileOptions& options, const std::optional<Json>& base = std::nullopt) {
  const auto made = oci_profile(rules(), options, base);
  EXPECT_TRUE(made) << made.error().text();
  return made ? *made : Json();
}
// Actions of the entries that name the call, in order.
std::vector<std::string> actions(const Json& profile, const std::string& call) {
  std::vector<std::string> out;
  for (const Json& entry : profile["syscalls"])
    for (const Json& name : entry["names"])
      if (name == call) out.push_back(entry["action"]);
  return out;
}

TEST(OciProfile, WithoutABaseAllowsAllAndTrapsWhatTheRulesName) {
  const Json made = profile({.socket = "/run/s", .class_name = "web", .limits = true});
  EXPECT_EQ(made["defaultAction"], "SCMP_ACT_ALLOW");
  EXPECT_EQ(made["listenerPath"], "/run/s");
  EXPECT_EQ(made["listenerMetadata"], "limits class=web");
  EXPECT_THAT(actions(made, "read"), ElementsAre("SCMP_ACT_NOTIFY"));
  EXPECT_THAT(actions(made, "io_uring_setup"), ElementsAre("SCMP_ACT_ERRNO"));
  const Json& conditional = made["syscalls"].front();
  EXPECT_EQ(conditional["args"].dump(), R"([{"index":1,"value":8,"valueTwo":8,"op":"SCMP_CMP_MASKED_EQ"}])");
}

TEST(OciProfile, ForRuncTrapsNoWrite) {
  const Json made = profile({.socket = "/run/s", .limits = true, .write_call = false});
  EXPECT_THAT(actions(made, "write"), ElementsAre());
  EXPECT_THAT(actions(made, "read"), ElementsAre("SCMP_ACT_NOTIFY"));
}

// A call that an agent lets through is not looked at by the profile any more.
TEST(OciProfile, OfABaseTrapsOnlyWhatThatAllowsAlways) {
  const Json base = Json::parse(R"({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
    {"names": ["read", "close"], "action": "SCMP_ACT_ALLOW"},
    {"names": ["write"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}},
    {"names": ["seccomp"], "action": "SCMP_ACT_ALLOW", "args": [], "includes": {}, "excludes": {}}]})");
  const Json made = profile({.socket = "/run/s"}, base);
  EXPECT_THAT(actions(made, "read"), ElementsAre("SCMP_ACT_NOTIFY"));
  EXPECT_THAT(actions(made, "close"), ElementsAre("SCMP_ACT_ALLOW"));
  EXPECT_THAT(actions(made, "write"), ElementsAre("SCMP_ACT_ALLOW")) << "with that capability alone, as before";
  EXPECT_THAT(actions(made, "seccomp"), ElementsAre("SCMP_ACT_NOTIFY")) << "in all forms";
  EXPECT_THAT(actions(made, "io_uring_setup"), ElementsAre()) << "refused by default";
  EXPECT_FALSE(made.contains("listenerMetadata"));
}

TEST(OciProfile, OfABaseThatRefusesACallLeavesItRefused) {
  const Json base = Json::parse(R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
    {"names": ["read"], "action": "SCMP_ACT_ERRNO"}]})");
  const Json made = profile({.socket = "/run/s"}, base);
  EXPECT_THAT(actions(made, "read"), ElementsAre("SCMP_ACT_ERRNO"));
  EXPECT_THAT(actions(made, "write"), ElementsAre("SCMP_ACT_NOTIFY"));
}

TEST(OciProfile, OfABaseThatIsNoneSaysWhatIsWrong) {
  for (const char* text :
       {"[]", "{}", R"({"defaultAction": 7})", R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": 7})",
        R"({"defaultAction": "SCMP_ACT_ALLOW", "listenerPath": "/run/other"})"}) {
    const auto made = oci_profile(rules(), {.socket = "/run/s"}, Json::parse(text));
    ASSERT_FALSE(made) << text;
    EXPECT_THAT(made.error().text(), HasSubstr("profile"));
  }
}

}  // namespace
}  // namespace swapd::daemon
