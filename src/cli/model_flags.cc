#include "cli/model_flags.h"

#include <fmt/format.h>

#include "gguf/tensor_type.h"

namespace pagoda::cli {

void add_model_option(const CommandSpec& command, std::string& model) {
  command.add_option("-m,--model,MODEL", model,
                     "a GGUF file, a folder, or a name such as Org/Name[@REVISION][:FILE.gguf or "
                     ":Q4_K_M] in PAGODA_MODELS or the cache of Hugging Face (default: the default "
                     "model in the cache folder)");
}

void add_revision_option(const CommandSpec& command, std::string& revision) {
  command.add_option("--revision", revision,
                     "with a name: a branch, a tag, a commit id or its beginning; also as "
                     "NAME@REVISION (default: main)");
}

void add_tokenizer_option(const CommandSpec& command, std::string& tokenizer) {
  command.add_option("--tokenizer", tokenizer,
                     "take tokenizer and chat template from this model: a file, a folder or a name "
                     "(default: the model's own)");
}

void add_override_options(const CommandSpec& command, hf::ConfigOverrides& overrides) {
  command
      .add_option(
          "--hf-overrides", overrides.fields,
          "fields to change in a folder's config.json, as JSON: '{\"rope_theta\": 1000000}' "
          "(default: none)")
      .type_name("JSON");
  command
      .add_option(
          "--rope-scaling", overrides.rope_scaling,
          "rotate by another scaling than the model's, as JSON: '{\"rope_type\": \"yarn\", "
          "\"factor\": 4.0, \"original_max_position_embeddings\": 32768}'; the context grows "
          "by the factor (default: the model's)")
      .type_name("JSON");
}

void add_quantization_options(const CommandSpec& command, app::QuantizationOptions& options) {
  command
      .add_parsed(
          "--quantization",
          [&options](const std::string& word) -> std::string {
            const Result<gguf::TensorType> type = app::parse_quantization(word);
            if (!type.ok()) return type.error().message;
            options.type = type.value();
            return "";
          },
          "quantise F32, F16 and BF16 matrices at load and keep the result in the cache folder: "
          "q8_0, q4_0 or q4_k (default: weights stay as they are)")
      .type_name("q8_0|q4_0|q4_k");
  command
      .add_parsed(
          "--dtype",
          [&options](const std::string& word) -> std::string {
            const auto type = app::parse_dtype(word);
            if (!type.ok()) return type.error().message;
            options.dtype = type.value();
            return "";
          },
          "round F32, F16 and BF16 matrices to this type at load and keep the result likewise; "
          "quantised weights stay (default auto: all weights stay as they are)")
      .type_name("auto|bfloat16|float16|half|float32|float");
  command.add_byte_size("--quantized-cache-size", options.cache_bytes,
                        "limit of the models so made that are kept, the least recently used go "
                        "first; 0: keep none (default: 32GiB, or half of the free space)");
}

void add_generation_options(const CommandSpec& command, app::GenerationConfig& generation) {
  command
      .add_parsed(
          "--generation-config",
          [&generation](const std::string& word) -> std::string {
            generation.from_model = word == "auto";
            if (word == "auto" || word == "none" || word == "vllm") return "";
            return fmt::format(
                "{} is neither auto nor none: a folder of its own is not supported here; use "
                "--override-generation-config",
                word);
          },
          "auto: fields that a request leaves out are as the model recommends; none (or vllm): as "
          "the API's defaults (default auto)")
      .type_name("auto|none");
  command
      .add_option("--override-generation-config", generation.override_json,
                  "defaults above the model's, as JSON: '{\"temperature\": 0.5}'; temperature, "
                  "top_k, top_p, min_p and repetition_penalty (default: none)")
      .type_name("JSON");
}

void add_trust_option(const CommandSpec& command, bool& trusts) {
  command.add_flag("--trust-remote-code", trusts,
                   "taken for vLLM's sake, does nothing: no code of a model is ever run");
}

void add_token_choice_options(const CommandSpec& command, app::SamplingFields& fields) {
  command.add_option("--top-k", fields.top_k,
                     "sample from the K likeliest tokens (default: the model's, else 0: all)");
  command
      .add_option("--min-p", fields.min_p,
                  "drop tokens less likely than this share of the best (default: the model's, else "
                  "0)")
      .range(0.0, 1.0);
  command
      .add_option("--repeat-penalty,--repetition-penalty", fields.repetition_penalty,
                  "above 1 makes tokens that are there already less likely (default: the model's, "
                  "else 1)")
      .range(1e-6, 100.0);
}

}  // namespace pagoda::cli
