// Container names, from records as the engines write them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "enroll/container_names.h"

namespace swapd::daemon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
namespace fs = std::filesystem;

const std::string web_id(64, 'a'), db_id(64, 'b');

class ContainerNamesTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/swapd-engines-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    root = name;
  }
  void TearDown() override { fs::remove_all(root); }
  void record(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  [[nodiscard]] std::vector<std::string> names() const { return ContainerNames(root).of(web_id); }
  std::string root;
};

TEST_F(ContainerNamesTest, DockersHasASlashBefore) {
  record("/var/lib/docker/containers/" + web_id + "/config.v2.json",
         R"({"ID":"x","Name":"/web","State":{"Running":true}})");
  EXPECT_THAT(names(), ElementsAre("web"));
}

TEST_F(ContainerNamesTest, PodmansStandInItsStoragesList) {
  record("/var/lib/containers/storage/overlay-containers/containers.json",
         R"([{"id":")" + db_id + R"(","names":["db"]},{"id":")" + web_id + R"(","names":["web"],"layer":"1"}])");
  EXPECT_THAT(names(), ElementsAre("web"));
}

TEST_F(ContainerNamesTest, KubernetesNamesTheContainerAndItsPod) {
  record("/run/containerd/io.containerd.runtime.v2.task/k8s.io/" + web_id + "/config.json",
         R"({"annotations":{"io.kubernetes.cri.container-name":"nginx","io.kubernetes.cri.sandbox-name":"web-1"}})");
  EXPECT_THAT(names(), ElementsAre("nginx", "web-1"));
}

TEST_F(ContainerNamesTest, CrioHasNamesOfItsOwnForThese) {
  record("/run/containers/storage/overlay-containers/" + web_id + "/userdata/config.json",
         R"({"annotations":{"io.kubernetes.container.name":"nginx","io.kubernetes.pod.name":"web-1"}})");
  EXPECT_THAT(names(), ElementsAre("nginx", "web-1"));
}

TEST_F(ContainerNamesTest, RecordsThatAreSomethingElseNameNothing) {
  EXPECT_THAT(names(), IsEmpty());
  record("/var/lib/docker/containers/" + web_id + "/config.v2.json", R"(["Name"])");
  record("/var/lib/containers/storage/overlay-containers/containers.json",
         R"([1,{"id":3},{"id":")" + web_id + R"("}])");
  record("/run/containers/storage/overlay-containers/" + web_id + "/userdata/config.json", R"({"annotations":[]})");
  record("/run/containerd/io.containerd.runtime.v2.task/k8s.io/" + web_id + "/config.json", "{");
  EXPECT_THAT(names(), IsEmpty());
}

// A user can make a cgroup that is called like one.
TEST_F(ContainerNamesTest, NoPathIsMadeOfWhatIsNoId) {
  record("/var/lib/docker/secret/config.v2.json", R"({"Name":"/web"})");
  EXPECT_THAT(ContainerNames(root).of("../secret"), IsEmpty());
  EXPECT_THAT(ContainerNames(root).of(std::string(65, 'a')), IsEmpty());
}

TEST_F(ContainerNamesTest, AreRememberedForAMinute) {
  ContainerNames remembering(root);
  const std::string path = "/var/lib/docker/containers/" + web_id + "/config.v2.json";
  record(path, R"({"Name":"/web"})");
  EXPECT_THAT(remembering.of(web_id), ElementsAre("web"));
  fs::remove(root + path);
  EXPECT_THAT(remembering.of(web_id), ElementsAre("web"));
}

}  // namespace
}  // namespace swapd::daemon
