// A model of tests/data/models quantised into a file of its own, which goes with the object.
#pragma once

#include <string>

#include "gguf/tensor_type.h"

namespace pagoda::model {

class QuantisedCopy {
 public:
  // `name` is of a file below tests/data/models. Stops the program with the message where it cannot
  // be quantised.
  QuantisedCopy(const std::string& name, gguf::TensorType type);
  QuantisedCopy(const QuantisedCopy&) = delete;
  QuantisedCopy& operator=(const QuantisedCopy&) = delete;
  ~QuantisedCopy();

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace pagoda::model
