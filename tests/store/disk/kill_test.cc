// A process that writes is killed at random instants, again and again; the pages it had called
// durable are there afterwards, and no page that is there is wrong.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "base/random.h"
#include "store/disk/store_fixture.h"

namespace pagoda::store {
namespace {

using kv::StoreFault;

constexpr std::uint64_t kSlots = 48;
constexpr std::uint64_t kFlushNs = 10'000'000'000;

// Writes pages from `first` on and sends each number that a flush made durable into the pipe.
[[noreturn]] void write_for_ever(const DiskOptions& options, std::uint64_t first, int told) {
  StoreFixture fixture(options);
  fixture.wait_until_ready();
  for (std::uint64_t number = first;; number += 3) {
    for (std::uint64_t i = number; i < number + 3; ++i) {
      if (fixture.write(i) != StoreFault::kNone) ::_exit(3);
    }
    if (!fixture.store().flush(kFlushNs).ok()) ::_exit(4);
    const std::uint64_t durable[3] = {number, number + 1, number + 2};
    if (::write(told, durable, sizeof(durable)) != sizeof(durable)) ::_exit(5);
  }
}

TEST(DiskKill, WhatWasCalledDurableOutlivesEveryKill) {
  const TemporaryFolder folder;
  DiskOptions options = fixture_options(folder.path(), kSlots);
  options.commit_after_ns = 2'000'000;  // many commits of the store's own as well
  const std::uint64_t seed = fresh_seed();
  SCOPED_TRACE(seed);
  std::uint64_t next = 0;
  std::uint64_t durable_all = 0;
  for (std::uint64_t round = 0; round < 25; ++round) {
    int told[2];
    ASSERT_EQ(::pipe(told), 0);
    const pid_t child = ::fork();
    if (child == 0) write_for_ever(options, next, told[1]);
    ::close(told[1]);
    std::vector<std::uint64_t> durable;
    std::uint64_t number = 0;
    const auto hear = [&] {
      const bool is_heard = ::read(told[0], &number, sizeof(number)) == sizeof(number);
      if (is_heard) durable.push_back(number);
      return is_heard;
    };
    // In every other round the process made progress before its clock starts, however busy the
    // host.
    if (round % 2 == 0) {
      ASSERT_TRUE(hear());
    }
    ::usleep(static_cast<useconds_t>(5'000 + random_bits(seed, 1, round) % 90'000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself with " << WEXITSTATUS(status);
    while (hear()) {
    }
    ::close(told[0]);
    durable_all += durable.size();

    StoreFixture fixture(options);
    fixture.wait_until_ready();
    // The pages written last cannot have been evicted: at most six more were begun after them.
    const std::size_t sure = std::min<std::size_t>(durable.size(), kSlots - 8);
    for (std::size_t i = durable.size() - sure; i < durable.size(); ++i) {
      EXPECT_EQ(fixture.read(durable[i]), StoreFault::kNone) << "page " << durable[i];
    }
    const std::uint64_t first = next;
    if (!durable.empty()) next = durable.back() + 10;
    for (std::uint64_t i = first > 100 ? first - 100 : 0; i < next + 10; ++i) {
      fixture.read(i);  // EXPECTs that a page that comes back is the right one
    }
  }
  EXPECT_GE(durable_all, 39u) << "thirteen times three";
}

}  // namespace
}  // namespace pagoda::store
