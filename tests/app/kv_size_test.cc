// `pagoda size` says what a run keeps.
#include "app/kv_size.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "app/kv_dtype.h"
#include "app/loaded_model.h"
#include "gguf/file_builder.h"
#include "kernels/select.h"
#include "model/decoder.h"
#include "model/test_model.h"
#include "test_data.h"

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
  for (const auto& entry : std::filesystem::directory_iterator(test_data() + "/models")) {
    if (!entry.path().filename().string().starts_with("arch_")) continue;
    const auto file = open_model_file(entry.path().string());
    ASSERT_TRUE(file.ok()) << file.error().message;
    const model::Config config = model::read_config(file.value()).value();
    const model::Weights weights =
        model::load_weights(file.value(), config, kernels::ref_set()).value();
    const auto model = read_kv_model(file.value());
    ASSERT_TRUE(model.ok()) << model.error().message;
    for (const char* const dtype : {"bf16", "fp8", "fp8_e5m2", "int8", "int4", "k8v4", "bf16/int8",
                                    "q8_0/q4_0", "fp8/bf16"}) {
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

// A file with one block more, which predicts the token after the next, as DeepSeek V3's have.
gguf::File with_predicting_block(const std::string& path) {
  gguf::File file = open_model_file(path).value();
  const std::uint64_t blocks = file.metadata().unsigned_value("deepseek2.block_count").value();
  const std::string last = fmt::format("blk.{}.", blocks - 1);
  std::vector<gguf::Tensor> copied;
  for (const gguf::Tensor& tensor : file.tensors()) {
    if (tensor.name.starts_with(last)) copied.push_back(tensor);
  }
  gguf::FileBuilder builder(std::move(file));
  builder.remove("deepseek2.block_count");
  builder.set_unsigned("deepseek2.block_count", blocks + 1);
  builder.set_unsigned("deepseek2.nextn_predict_layers", 1);
  for (const gguf::Tensor& tensor : copied) {
    const std::string rest(tensor.name.substr(last.size()));
    for (const char* const kind : {"", "nextn."}) {
      EXPECT_TRUE(builder
                      .add_tensor(fmt::format("blk.{}.{}{}", blocks, kind, rest), tensor.type,
                                  std::span(tensor.extents).first(tensor.dimensions), tensor.bytes)
                      .ok());
    }
  }
  return std::move(builder).build();
}

TEST(KvSize, BlocksThatPredictMoreTokensKeepNothingAndChangeNoLogit) {
  const std::string path = test_data() + "/models/arch_deepseek3.gguf";
  const gguf::File plain = open_model_file(path).value();
  const gguf::File more = with_predicting_block(path);
  ASSERT_GT(more.tensors().size(), plain.tensors().size());
  EXPECT_EQ(read_kv_model(more).value().groups, read_kv_model(plain).value().groups);
  const auto logits = [](const gguf::File& file) {
    const auto config = model::read_config(file);
    EXPECT_TRUE(config.ok()) << config.error().message;
    const auto weights = model::load_weights(file, config.value(), kernels::ref_set());
    EXPECT_TRUE(weights.ok()) << weights.error().message;
    const model::ModelParts parts = {config.value(), weights.value()};
    return model::run_sequences(parts, {}, {model::random_tokens(parts.config, 40, 3)}).front();
  };
  EXPECT_EQ(logits(more), logits(plain));
}

}  // namespace
}  // namespace pagoda::app
