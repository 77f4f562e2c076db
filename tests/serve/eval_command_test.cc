#include "serve/eval_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda::serve {
namespace {

using testing::ElementsAre;

TEST(EvalCommand, MeasuresWhatIsServed) {
  ServeOptions options;
  options.model = "model.gguf";
  EXPECT_THAT(eval_words(options, "int8"),
              ElementsAre("pagoda", "eval", "model.gguf", "--kv", "int8"));
  options.kv_cache_dtype = kv::memory::Element::kInt8;
  options.kv_cache_dtype.skip_layers = {1, 0};
  options.kv_cache_dtype.skip_windows = true;
  EXPECT_THAT(eval_words(options, "int8 skip 0,1,sliding_window"),
              ElementsAre("pagoda", "eval", "model.gguf", "--kv", "int8",
                          "--kv-cache-dtype-skip-layers", "0,1,sliding_window"));
  options.kv_cache_dtype = {};
  options.tokenizer = "other.gguf";
  options.overrides.rope_scaling = "{\"factor\": 2}";
  options.quantization.type = gguf::TensorType::kQ8_0;
  options.max_model_len = 2048;
  options.device.kind = app::DeviceKind::kCpu;
  options.threads = 3;
  EXPECT_THAT(eval_words(options, "int4"),
              ElementsAre("pagoda", "eval", "model.gguf", "--kv", "int4", "--tokenizer",
                          "other.gguf", "--rope-scaling", "{\"factor\": 2}", "--quantization",
                          "Q8_0", "--max-model-len", "2048", "--device", "cpu", "--threads", "3"));
}

TEST(EvalCommand, NamesTheBlocksWhereAPolicyDropsThem) {
  ServeOptions options;
  options.model = "model.gguf";
  options.block_size = 64;
  EXPECT_THAT(eval_words(options, "bf16@streaming:4+64"),
              ElementsAre("pagoda", "eval", "model.gguf", "--kv", "bf16@streaming:4+64"));
  options.kv_policy = kv::KvPolicy::parse("h2o:64+16").value();
  EXPECT_THAT(
      eval_words(options, "bf16@h2o:64+16"),
      ElementsAre("pagoda", "eval", "model.gguf", "--kv", "bf16@h2o:64+16", "--block-size", "64"));
}

TEST(EvalCommand, InIdleTimeIsShortAndByTheSameDevice) {
  ServeOptions options;
  options.model = "model.gguf";
  EXPECT_THAT(quick_eval_words(options, "int8"),
              ElementsAre("pagoda", "eval", "model.gguf", "--kv", "int8", "--quick"));
  EXPECT_THAT(idle_eval_words(options, "int8", {.on_gpu = true, .time_limit_s = 50}),
              ElementsAre("pagoda", "eval", "model.gguf", "--kv", "int8", "--device", "cuda",
                          "--background", "--time-limit", "50"));
  options.device.kind = app::DeviceKind::kCpu;
  EXPECT_THAT(idle_eval_words(options, "int8", {.on_gpu = false, .time_limit_s = 50}),
              ElementsAre("pagoda", "eval", "model.gguf", "--kv", "int8", "--device", "cpu",
                          "--background", "--time-limit", "50"));
}

}  // namespace
}  // namespace pagoda::serve
