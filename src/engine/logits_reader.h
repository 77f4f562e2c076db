// LogitsReader receives rows of a model's raw logits while a prompt is computed.
#pragma once

#include <cstdint>
#include <span>

namespace pagoda::engine {

class LogitsReader {
 public:
  virtual ~LogitsReader() = default;
  // `logits` are those that predict the prompt's token at `position`. Called on the threads that
  // compute, for several rows at once, each row once: must not block.
  virtual void on_logits(std::uint64_t position, std::span<const float> logits) = 0;
};

}  // namespace pagoda::engine
