// `pagoda size` says what a run keeps.
#include "app/kv_size.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "app/loaded_model.h"
#include "kernels/select.h"
#include "model/decoder.h"

namespace pagoda::app {
namespace {

// Bytes per token of all layers, without what pages leave unused.
std::uint64_t bytes_of(const model::Decoder& decoder) {
  std::uint64_t bytes = 0;
  for (const kv::memory::PageLayout& layout : decoder.group_plan().layouts) {
    bytes += (layout.page_bytes() - layout.unused_bytes) / layout.block_tokens;
  }
  return bytes;
}

TEST(KvSize, AgreesWithTheDecoderOfEveryArchitecture) {
  ThreadPool pool(1);
  std::size_t seen = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(PAGODA_TEST_DATA) + "/models")) {
    if (!entry.path().filename().string().starts_with("arch_")) continue;
    const auto file = open_model_file(entry.path().string());
    ASSERT_TRUE(file.ok()) << file.error().message;
    const model::Config config = model::read_config(file.value()).value();
    const model::Weights weights =
        model::load_weights(file.value(), config, kernels::ref_set()).value();
    const model::Decoder decoder(
        config, weights, kernels::ref_set(), pool,
        {.rows_max = 1, .kv_element = kv::memory::Element::kBF16, .block_tokens = 16});
    const auto size = read_kv_model(file.value());
    ASSERT_TRUE(size.ok()) << size.error().message;
    std::int64_t expected = 0;
    for (const KvLayers& group : size.value().groups) {
      expected += group.layers * group.kv_heads * (group.key_dim + group.value_dim) * 2;
    }
    EXPECT_EQ(bytes_of(decoder), static_cast<std::uint64_t>(expected)) << entry.path();
    ++seen;
  }
  EXPECT_GE(seen, 20u);
}

}  // namespace
}  // namespace pagoda::app
