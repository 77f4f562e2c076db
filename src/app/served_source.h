// A served model is a model's file, or a named shape whose weights are random (--random-weights).
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/device_choice.h"
#include "app/loaded_model.h"
#include "app/random_model.h"
#include "app/sampling_defaults.h"
#include "base/result.h"
#include "engine/backends/cpu_backend.h"
#include "text/chat_template.h"

namespace pagoda::app {

class ServedSource {
 public:
  // `kernels` must outlive the source.
  static Result<std::unique_ptr<ServedSource>> open(const std::string& model,
                                                    const ModelLoadOptions& options,
                                                    const RandomModelOptions& random,
                                                    const kernels::KernelSet& kernels);

  const text::Tokenizer& tokenizer() const;
  // That of `file`. Of an empty name the model's own; nothing, with a warning where it is broken,
  // when it has none.
  Result<std::optional<text::ChatTemplate>> chat_template(const std::string& file) const;
  // Whose fingerprint names what is computed; none of random weights. Open while the source lives.
  std::vector<gguf::OpenedPart> parts() const;
  // The bytes of the weights in the model's file; nothing for random ones.
  std::optional<std::int64_t> weights_in_file() const;
  // Describes the weights in the model's file by "format", "architecture", "type" (that of most
  // bytes), "parameters" and "bytes"; an empty object for random ones.
  nlohmann::ordered_json weights_facts() const;
  // Tokens of context that the model was trained on.
  std::uint64_t trained_context() const;
  // Names for people which factors of longrope the served context chose; empty for other models.
  std::string context_choice() const;
  // The names that requests may give, when none was given: that of a model found by its name, else
  // the file's; then the name as it was typed, such as "smollm2". The first is part of the name
  // under which KV is kept, the second is not.
  std::vector<std::string> names() const;
  // Returns the sampling that the model recommends, with `config` above it. Warnings go to stderr.
  Result<SamplingDefaults> sampling_defaults(const GenerationConfig& config) const;

  // The source must outlive the backend.
  Result<std::unique_ptr<engine::Backend>> create_backend(const DeviceOptions& device,
                                                          engine::BackendOptions options) const;

 private:
  ServedSource(const kernels::KernelSet& kernels, std::string model)
      : kernels_(kernels), model_(std::move(model)) {}

  const kernels::KernelSet& kernels_;
  std::string model_;                    // as it was given, or the shape of random weights
  std::string path_;                     // of the model's file or folder
  std::string name_;                     // "Org/Name", where the model was found by its name
  std::unique_ptr<LoadedModel> loaded_;  // or
  std::unique_ptr<RandomModel> random_;
};

}  // namespace pagoda::app
