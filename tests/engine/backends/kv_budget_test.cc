#include "engine/backends/kv_budget.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace pagoda::engine {
namespace {

class KvBudget : public testing::Test {
 protected:
  KvBudget()
      : root_(std::filesystem::temp_directory_path() /
              ("pagoda_kv_budget_" + std::to_string(::getpid()))) {
    write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable:    800 kB\n");
  }
  ~KvBudget() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::uint64_t available() const { return memory_available(root_.string() + "/").value(); }

  std::filesystem::path root_;
};

TEST_F(KvBudget, WithoutGroupsItIsWhatTheSystemSays) { EXPECT_EQ(available(), 800u * 1024); }

TEST_F(KvBudget, AGroupOfVersion2Binds) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/memory.max", "max\n");
  write("sys/fs/cgroup/a/b/memory.current", "1000\n");
  EXPECT_EQ(available(), 800u * 1024);
  write("sys/fs/cgroup/a/memory.max", "300000\n");
  write("sys/fs/cgroup/a/memory.current", "100000\n");
  EXPECT_EQ(available(), 200000u) << "a group above binds as well";
  write("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 40000\n");
  EXPECT_EQ(available(), 240000u) << "page cache can be dropped";
}

TEST_F(KvBudget, AGroupOfVersion1Binds) {
  write("proc/self/cgroup", "9:cpu:/x\n4:memory:/x\n0::/\n");
  write("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "500000");
  write("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "600000");
  EXPECT_EQ(available(), 0u);
}

TEST_F(KvBudget, ASystemThatDoesNotSayIsAnError) {
  write("proc/meminfo", "MemTotal: 1000 kB\n");
  EXPECT_FALSE(memory_available(root_.string() + "/").ok());
}

}  // namespace
}  // namespace pagoda::engine
