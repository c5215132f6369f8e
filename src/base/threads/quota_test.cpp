// SPDX-License-Identifier: BSD-3-Clause
// Quotas of control groups, read from files that the tests write below a folder of their own.
#include "base/threads/quota.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <climits>
#include <filesystem>
#include <fstream>
#include <string>

namespace imbrex::base {
namespace {

namespace fs = std::filesystem;

class QuotaTest : public testing::Test {
 protected:
  QuotaTest() : root_(fs::temp_directory_path() / ("imbrex_quota_" + std::to_string(getpid()))) {}
  ~QuotaTest() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& text) const {
    const fs::path path = root_.string() + name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  // Version 2, with the process in `group`.
  void unified(const std::string& group) const {
    write("/proc/self/cgroup", "0::" + group + "\n");
    write("/proc/self/mountinfo",
          "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
          "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  // Version 1; `mounted` is the group at the mount point.
  void by_controllers(const std::string& group, const std::string& mounted) const {
    write("/proc/self/cgroup", "5:memory:/other\n4:cpu,cpuacct:" + group + "\n0::/\n");
    write("/proc/self/mountinfo",
          "33 31 0:30 " + mounted +
              " /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
              "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n");
  }
  void quota(const std::string& folder, const std::string& quota, const std::string& period) const {
    write("/sys/fs/cgroup/cpu,cpuacct" + folder + "/cpu.cfs_quota_us", quota + "\n");
    write("/sys/fs/cgroup/cpu,cpuacct" + folder + "/cpu.cfs_period_us", period + "\n");
  }
  [[nodiscard]] double read() const { return processor_quota(root_.string()); }

 private:
  const fs::path root_;
};

TEST_F(QuotaTest, no_file_is_no_limit) { EXPECT_EQ(read(), 0); }

TEST_F(QuotaTest, version_2_limits_by_the_smallest_quota_on_the_path) {
  unified("/jobs/one/task");
  EXPECT_EQ(read(), 0);  // the root has no cpu.max
  write("/sys/fs/cgroup/jobs/one/task/cpu.max", "max 100000\n");
  EXPECT_EQ(read(), 0);
  write("/sys/fs/cgroup/jobs/one/cpu.max", "250000 100000\n");
  EXPECT_EQ(read(), 2.5);
  write("/sys/fs/cgroup/jobs/cpu.max", "400000 100000\n");
  EXPECT_EQ(read(), 2.5);
  write("/sys/fs/cgroup/jobs/one/task/cpu.max", "5000 10000\n");
  EXPECT_EQ(read(), 0.5);
  write("/sys/fs/cgroup/jobs/cpu.max", "1000 100000\n");
  EXPECT_EQ(read(), 0.01);
  write("/sys/fs/cgroup/jobs/two/cpu.max", "1 100000\n");  // of other processes
  EXPECT_EQ(read(), 0.01);
}

TEST_F(QuotaTest, a_container_of_version_2_sees_its_group_at_the_mount_point) {
  unified("/");
  write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(read(), 2);
  unified("/../../elsewhere");  // from another namespace
  EXPECT_EQ(read(), 2);
}

TEST_F(QuotaTest, version_1_limits_by_the_smallest_quota_on_the_path) {
  by_controllers("/jobs/one", "/");
  quota("/jobs/one", "-1", "100000");
  EXPECT_EQ(read(), 0);
  quota("/jobs", "300000", "100000");
  EXPECT_EQ(read(), 3);
  quota("/jobs/one", "75000", "50000");
  EXPECT_EQ(read(), 1.5);
}

TEST_F(QuotaTest, a_container_of_version_1_sees_the_path_of_its_host) {
  by_controllers("/docker/17", "/docker/17");
  quota("", "600000", "100000");
  EXPECT_EQ(read(), 6);
  by_controllers("/docker/17/inner", "/docker/17");
  quota("/inner", "100000", "100000");
  EXPECT_EQ(read(), 1);
  by_controllers("/docker/170", "/docker/17");  // outside of what is mounted
  EXPECT_EQ(read(), 6);
}

TEST_F(QuotaTest, both_versions_limit_at_once) {
  write("/proc/self/cgroup", "1:cpu:/a\n0::/b\n");
  write("/proc/self/mountinfo",
        "32 31 0:29 / /cg\\040one/cpu rw - cgroup cgroup rw,cpu\n"
        "41 31 0:38 / /cg\\040one/unified rw - cgroup2 cgroup2 rw\n");
  write("/cg one/cpu/a/cpu.cfs_quota_us", "400000");
  write("/cg one/cpu/a/cpu.cfs_period_us", "100000");
  EXPECT_EQ(read(), 4);
  write("/cg one/unified/b/cpu.max", "300000 100000");
  EXPECT_EQ(read(), 3);
}

TEST_F(QuotaTest, malformed_files_set_no_limit) {
  unified("/a");
  for (const char* const text : {"", "max", "200000", "200000 0", "0 100000", "-5 100000",
                                 "2e5 100000", "200000 100000 7", "9999999999999999999999 1",
                                 "200000x 100000", "\n\n"}) {
    write("/sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(read(), 0) << text;
  }
  write("/sys/fs/cgroup/a/cpu.max", "200000 100000");
  for (const char* const text : {"", "::", "0:", "1::/a", "0:cpu:/a", "no colon"}) {
    write("/proc/self/cgroup", text);
    EXPECT_EQ(read(), 0) << text;
  }
  write("/proc/self/cgroup", "0::/a");
  EXPECT_EQ(read(), 2);
  for (const char* const text : {"", "-", "1 2 3 / /sys/fs/cgroup - cgroup2 x rw",
                                 "1 2 3 / /sys/fs/cgroup rw cgroup2 x rw",
                                 "1 2 3 / /sys/fs/cgroup rw - cgroup2",
                                 "1 2 3 / /sys/fs/cgroup rw - cgroup x rw,cpuset"}) {
    write("/proc/self/mountinfo", text);
    EXPECT_EQ(read(), 0) << text;
  }
  by_controllers("/a", "/");
  for (const char* const text : {"", "many", "-1", "0", "1 2"}) {
    quota("/a", text, "100000");
    EXPECT_EQ(read(), 0) << text;
    quota("/a", "100000", text);
    EXPECT_EQ(read(), 0) << text;
  }
}

TEST_F(QuotaTest, parts_of_a_processor_are_rounded_up) {
  EXPECT_EQ(threads_for(2), 2);
  EXPECT_EQ(threads_for(2.01), 3);
  EXPECT_EQ(threads_for(0.1), 1);
  EXPECT_EQ(threads_for(1e30), INT_MAX);
}

TEST(QuotaParts, processes_divide_the_threads_and_none_is_without) {
  EXPECT_EQ(part_of(INT_MAX, 0, 1), INT_MAX);
  EXPECT_EQ(part_of(4, 1, 2), 2);
  EXPECT_EQ(part_of(5, 0, 2) + part_of(5, 1, 2), 5);
  EXPECT_EQ(part_of(2, 3, 8), 1);
}

}  // namespace
}  // namespace imbrex::base
