// Ranks as processes of an MPI job: the same outputs, and nothing hangs whichever process ends.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "engine/backends/ranks_backend.h"
#include "engine/request_mix.h"
#include "ranks/rank_job.h"

namespace pagoda::engine {
namespace {

const kernels::KernelSet& fastest() { return *kernels::available_sets().back(); }

BackendOptions options_of_test() {
  BackendOptions options;
  options.threads = 1;
  options.scheduler.sequences_max = 8;
  options.scheduler.batched_tokens_max = 64;
  options.kv_bytes = 8 << 20;
  return options;
}

// A process that has ended and that nobody has asked about (state Z) runs no more.
bool runs(pid_t process) {
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  if (!std::getline(stat, text)) return false;
  const std::size_t name_end = text.rfind(')');
  return name_end + 2 < text.size() && text[name_end + 2] != 'Z';
}

// A backend over processes, and who they are.
struct MpiRanks {
  explicit MpiRanks(std::uint32_t count, std::chrono::milliseconds limit = std::chrono::minutes(5),
                    const std::string& model = "stories260K.gguf") {
    auto started = ranks::RankJob::start({.ranks = count, .program = PAGODA_TEST_RANK});
    EXPECT_TRUE(started.ok()) << (started.ok() ? "" : started.error().message);
    const std::shared_ptr<ranks::RankJob> job = std::move(started).value();
    LoadedRanks loaded = {.owner = job, .group = {}, .facts = {}, .threads = 1};
    loaded.group = std::make_unique<ranks::RankGroup>(job->take_channels(), limit,
                                                      [job = job.get()] { job->end(); });
    EXPECT_TRUE(
        loaded.group->send_to_all(ranks::MessageKind::kSetup, std::as_bytes(std::span(model)))
            .ok());
    for (std::uint32_t rank = 0; rank < count; ++rank) {
      const auto said = loaded.group->receive(rank, ranks::MessageKind::kReady);
      EXPECT_TRUE(said.ok()) << (said.ok() ? "" : said.error().message);
      std::uint64_t numbers[2] = {};
      std::memcpy(numbers, said.value().data(), sizeof numbers);
      loaded.facts.push_back({.page_bytes = numbers[0]});
      processes.push_back(static_cast<pid_t>(numbers[1]));
    }
    auto made =
        RanksBackend::create(stories().config(), fastest(), options_of_test(), std::move(loaded));
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    backend = std::move(made).value();
  }
  // Waits until none of the processes is there.
  void expect_all_end() const {
    for (const pid_t process : processes) {
      while (runs(process)) std::this_thread::yield();
    }
  }

  std::vector<pid_t> processes;
  std::unique_ptr<RanksBackend> backend;
};

std::vector<std::shared_ptr<TestSink>> run_all(EngineFixture& fixture,
                                               const std::vector<Request>& requests) {
  std::vector<std::shared_ptr<TestSink>> got;
  for (const Request& request : requests) got.push_back(fixture.submit(request));
  fixture.run();
  return got;
}

TEST(MpiRanks, GiveTheOutputsOfOneAndEndWithTheirBackend) {
  const std::vector<Request> requests = draw_requests(stories().config(), 6, 40, 12);
  EngineFixture whole(stories(), options_of_test(), fastest());
  const auto alone = run_all(whole, requests);
  for (const std::uint32_t count : {2u, 3u}) {
    MpiRanks ranks(count);
    {
      EngineFixture fixture(std::move(ranks.backend));
      expect_same(run_all(fixture, requests), alone);
    }
    ranks.expect_all_end();
  }
}

Request long_request() {
  Request request;
  request.prompt = model::random_tokens(stories().config(), 30, 7);
  request.end.max_tokens = 200;
  request.end.ignore_eos = true;
  return request;
}

// Killed in the middle of a request, by the system or stopped for good.
TEST(MpiRanks, ARankThatIsKilledOrStoppedEndsRequestsAndItsJob) {
  struct Row {
    std::uint32_t rank;
    int signal;
  };
  for (const Row& row : {Row{0, SIGKILL}, Row{1, SIGKILL}, Row{1, SIGSTOP}}) {
    MpiRanks ranks(2, row.signal == SIGSTOP ? std::chrono::seconds(2) : std::chrono::minutes(5));
    {
      EngineFixture fixture(std::move(ranks.backend));
      const auto heard = fixture.submit(long_request());
      for (int i = 0; i < 5; ++i) fixture.step();
      EXPECT_FALSE(heard->ended());
      kill(ranks.processes[row.rank], row.signal);
      fixture.run();
      ASSERT_TRUE(heard->ended());
      EXPECT_EQ(heard->answers[0].reason, FinishReason::kLost);
      EXPECT_NE(heard->answers[0].message.find("rank "), std::string::npos);
      const auto after = fixture.submit(long_request());
      fixture.run();
      EXPECT_EQ(after->answers[0].reason, FinishReason::kLost);
    }
    ranks.expect_all_end();
  }
}

TEST(MpiRanks, ARankThatIsKilledWhileNothingRunsIsMissed) {
  MpiRanks ranks(2);
  EngineFixture fixture(std::move(ranks.backend));
  kill(ranks.processes[1], SIGKILL);
  while (!fixture.core().is_lost()) {
    if (const auto error = fixture.backend().runner().find_loss()) fixture.core().lose(*error);
    std::this_thread::yield();
  }
}

TEST(RankJob, AProgramThatIsNotThereOrIsNoRankIsAnError) {
  EXPECT_FALSE(ranks::RankJob::start({.ranks = 2, .program = "/bin/false"}).ok());
  const auto none = ranks::RankJob::start({.ranks = 2});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(none.error().message.find("tensor_parallel_size"), std::string::npos);
}

}  // namespace
}  // namespace pagoda::engine
