#include "base/control_group.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "temporary_folder.h"

namespace pagoda {
namespace {

class ControlGroups : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::string root() const { return folder_.path() + "/"; }
  std::optional<double> quota() const { return cpu_quota(root()); }

  TemporaryFolder folder_;
};

TEST_F(ControlGroups, WithoutThemThereIsNoQuota) { EXPECT_EQ(quota(), std::nullopt); }

TEST_F(ControlGroups, TheQuotaOfVersion2IsTheLeastOfAllAbove) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), std::nullopt);
  write("sys/fs/cgroup/a/cpu.max", "250000 100000\n");
  EXPECT_EQ(quota(), 2.5);
  write("sys/fs/cgroup/a/b/cpu.max", "600000 100000\n");
  EXPECT_EQ(quota(), 2.5);
  write("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
  EXPECT_EQ(quota(), 0.5);
}

// In a container the paths of /proc may be those outside: only the top is mounted.
TEST_F(ControlGroups, AContainersTopBinds) {
  write("proc/self/cgroup", "0::/docker/abc\n");
  write("sys/fs/cgroup/cpu.max", "300000 100000\n");
  EXPECT_EQ(quota(), 3.0);
}

TEST_F(ControlGroups, TheQuotaOfVersion1IsInTwoFiles) {
  write("proc/self/cgroup", "9:cpuset:/x\n4:cpu,cpuacct:/x\n2:memory:/y\n");
  write("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), std::nullopt);
  write("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "150000\n");
  EXPECT_EQ(quota(), 1.5);
}

TEST_F(ControlGroups, WhatIsNoQuotaIsNone) {
  write("proc/self/cgroup", "nonsense\n0::\n0::foo\n3:cpu:foo/bar\n");
  for (const char* const text : {"", "x", "100000", "100000 0", "0 100000", "-5 100000"}) {
    write("sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(quota(), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace pagoda
