#include "serve/eval_command.h"

#include <fmt/format.h>

#include "app/kv_dtype.h"
#include "gguf/tensor_type.h"

namespace pagoda::serve {

std::vector<std::string> eval_words(const ServeOptions& options, const std::string& configuration) {
  std::vector<std::string> words = {"pagoda", "eval", options.model};
  const auto add = [&](const char* flag, const std::string& value) {
    if (value.empty()) return;
    words.emplace_back(flag);
    words.push_back(value);
  };
  add("--kv", configuration.substr(0, configuration.find(' ')));
  add("--kv-cache-dtype-skip-layers", app::kv_skipped_layers(options.kv_cache_dtype));
  add("--revision", options.revision);
  add("--tokenizer", options.tokenizer);
  add("--hf-overrides", options.overrides.fields);
  add("--rope-scaling", options.overrides.rope_scaling);
  if (options.quantization.type) {
    add("--quantization", std::string(gguf::tensor_type_info(*options.quantization.type).name));
  }
  if (options.quantization.dtype) {
    add("--dtype", std::string(app::dtype_name(*options.quantization.dtype)));
  }
  if (options.max_model_len > 0) {
    add("--max-model-len", fmt::format("{}", options.max_model_len));
  }
  if (options.device.kind != app::DeviceKind::kAuto) {
    add("--device", options.device.kind == app::DeviceKind::kCpu ? "cpu" : "cuda");
  }
  if (options.kv_policy.selects_pages() && options.block_size != ServeOptions().block_size) {
    add("--block-size", fmt::format("{}", options.block_size));
  }
  if (options.threads > 0) add("--threads", fmt::format("{}", options.threads));
  return words;
}

std::vector<std::string> quick_eval_words(const ServeOptions& options,
                                          const std::string& configuration) {
  std::vector<std::string> words = eval_words(options, configuration);
  words.emplace_back("--quick");
  return words;
}

std::vector<std::string> idle_eval_words(const ServeOptions& options,
                                         const std::string& configuration, const IdleEval& idle) {
  std::vector<std::string> words = eval_words(options, configuration);
  if (idle.on_gpu && options.device.kind == app::DeviceKind::kAuto) {
    words.insert(words.end(), {"--device", "cuda"});
  }
  words.insert(words.end(),
               {"--background", "--time-limit", fmt::format("{:.0f}", idle.time_limit_s)});
  return words;
}

}  // namespace pagoda::serve
