// `pagoda size` says what a run keeps.
#include "app/kv_size.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "app/kv_dtype.h"
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
    const auto model = read_kv_model(file.value());
    ASSERT_TRUE(model.ok()) << model.error().message;
    for (const char* const dtype : {"bf16", "fp8", "fp8_e5m2", "int8", "int4", "k8v4"}) {
      const model::KvCacheDtype elements = *parse_kv_dtype(dtype).value();
      if (!model::check_kv_cache_dtype(config, elements).ok()) continue;
      const model::Decoder decoder(config, weights, kernels::ref_set(), pool,
                                   {.rows_max = 1, .kv_cache_dtype = elements, .block_tokens = 16});
      const auto size = kv_size({.groups = model.value().groups, .format = *find_kv_format(dtype)});
      ASSERT_TRUE(size.ok()) << size.error().message;
      EXPECT_EQ(bytes_of(decoder), static_cast<std::uint64_t>(size.value().per_token.stored))
          << entry.path() << " " << dtype;
      ++seen;
    }
  }
  EXPECT_GE(seen, 100u);
}

}  // namespace
}  // namespace pagoda::app
