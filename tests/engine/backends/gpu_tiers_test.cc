// Pages that left a GPU's memory and came back: the same answers, whichever way they went.
#include <gtest/gtest.h>

#include "engine/backends/gpu_engine_fixture.h"
#include "kernels/cuda/open_gpu.h"
#include "store/disk/disk_store.h"
#include "store/host/host_store.h"
#include "store/staged/staged_store.h"
#include "temporary_folder.h"

namespace pagoda::gpu_test {
namespace {

using engine::Request;
using engine::TestSink;

std::vector<Request> tiered_requests(const model::Config& config, std::size_t count) {
  std::vector<Request> requests;
  for (std::size_t i = 0; i < count; ++i) {
    Request request;
    request.prompt = model::random_tokens(config, 200 + i * 61 % 300, 7 + i);
    request.end.max_tokens = 12 + static_cast<std::uint32_t>(i % 5);
    request.sampling.seed = i;
    if (i % 2 == 1) request.sampling.temperature = 0.8f;
    if (i % 4 == 2) request.sampling.n = 2;
    requests.push_back(request);
  }
  return requests;
}

enum class Way { kHost, kDisk };

std::unique_ptr<kv::PageStore> open_store(Way way, const std::string& folder,
                                          engine::Backend& backend) {
  const std::uint64_t page_bytes = backend.page_layout().page_bytes();
  auto copier = backend.create_page_copier();
  EXPECT_TRUE(copier.ok());
  if (way == Way::kHost) {
    return store::HostStore::open({.bytes_max = 512 * page_bytes, .page_bytes = page_bytes},
                                  std::move(copier).value())
        .value();
  }
  auto disk = store::DiskStore::open({.path = folder,
                                      .bytes_max = std::uint64_t{256} << 20,
                                      .page_bytes = page_bytes,
                                      .block_tokens = 16,
                                      .key_file = {}});
  EXPECT_TRUE(disk.ok()) << disk.error().message;
  return store::StagedStore::open(std::move(disk).value(), std::move(copier).value(),
                                  {.page_bytes = page_bytes, .slots = 8})
      .value();
}

class GpuTiers : public testing::TestWithParam<std::tuple<Way, KvChoice>> {
 protected:
  static Way way() { return std::get<0>(GetParam()); }
  static FixtureOptions with_choice(FixtureOptions options = {}) {
    options.kv_cache_dtype = std::get<1>(GetParam()).elements;
    options.kv_policy = std::get<1>(GetParam()).policy;
    return options;
  }

  const TemporaryFolder folder_;
};

TEST_P(GpuTiers, PagesThatCameBackGiveTheSameAnswers) {
  REQUIRE_GPU();
  const SeededModel model({.heads = 8, .kv_heads = 2, .head_dim = 64});
  const std::vector<Request> requests = tiered_requests(model.config(), 12);
  std::vector<std::shared_ptr<TestSink>> alone;
  for (const Request& request : requests) {
    GpuEngineFixture gpu(model, with_choice());
    alone.push_back(gpu.submit(request));
    gpu.run();
  }
  // Less than the requests need together: what ends is soon evicted, and some are preempted.
  GpuEngineFixture gpu(
      model, with_choice({.blocks = 96, .batched_tokens = 128, .open_store = [&](auto& backend) {
                            return open_store(way(), folder_.path(), backend);
                          }}));
  std::uint64_t loaded = 0;
  for (int round = 0; round < 4; ++round) {
    std::vector<std::shared_ptr<TestSink>> heard;
    for (const Request& request : requests) {
      heard.push_back(gpu.submit(request));
      if (round % 2 == 1) gpu.run();  // one by one, and all together
    }
    gpu.run();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      expect_same(*heard[i], *alone[i], i);
      loaded += heard[i]->answers[0].record.load.tokens_loaded();
    }
  }
  EXPECT_GT(loaded, std::get<1>(GetParam()).policy.is_full() ? 1000u : 0u);
  RecordProperty("tokens_loaded", static_cast<int>(loaded));
}

INSTANTIATE_TEST_SUITE_P(Ways, GpuTiers,
                         testing::Combine(testing::Values(Way::kHost, Way::kDisk),
                                          testing::ValuesIn(kv_choices())),
                         [](const auto& tested) {
                           const bool host = std::get<0>(tested.param) == Way::kHost;
                           return (host ? "Host" : "Disk") + choice_name(std::get<1>(tested.param));
                         });

}  // namespace
}  // namespace pagoda::gpu_test
