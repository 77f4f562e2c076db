// Rows of logits of the reference run, which others are compared with: fp32, the whole vocabulary.
// They lie in a file without a name in the cache folder, as gigabytes of them may be needed: the
// system writes out what memory is short of, and the space is free when the process ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace pagoda::eval {

class ReferenceLogits {
 public:
  // An error names the bytes and the folder that has no room for them.
  static Result<std::unique_ptr<ReferenceLogits>> create(const std::string& folder,
                                                         std::uint64_t rows,
                                                         std::uint32_t vocabulary);
  ~ReferenceLogits();
  ReferenceLogits(const ReferenceLogits&) = delete;
  ReferenceLogits& operator=(const ReferenceLogits&) = delete;

  std::uint64_t rows() const { return rows_; }
  std::span<float> row(std::uint64_t row) { return {data_ + row * vocabulary_, vocabulary_}; }

 private:
  ReferenceLogits(float* data, std::uint64_t rows, std::uint32_t vocabulary)
      : data_(data), rows_(rows), vocabulary_(vocabulary) {}

  float* data_;
  std::uint64_t rows_;
  std::uint32_t vocabulary_;
};

}  // namespace pagoda::eval
