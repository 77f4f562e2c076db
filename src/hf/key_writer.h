// Writes keys below "<architecture>." of a model's description.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file_builder.h"

namespace pagoda::hf {

class KeyWriter {
 public:
  // `builder` must outlive the KeyWriter.
  KeyWriter(gguf::FileBuilder& builder, std::string_view architecture)
      : builder_(builder), prefix_(std::string(architecture) + ".") {}

  void count(std::string_view name, std::uint64_t value) const {
    builder_.set_unsigned(prefix_ + std::string(name), value);
  }
  void number(std::string_view name, double value) const {
    builder_.set_number(prefix_ + std::string(name), value);
  }
  void flag(std::string_view name, bool value) const {
    builder_.set_flag(prefix_ + std::string(name), value);
  }
  void text(std::string_view name, std::string_view value) const {
    builder_.set_text(prefix_ + std::string(name), value);
  }
  void flags(std::string_view name, const std::vector<bool>& values) const {
    builder_.set_flags(prefix_ + std::string(name), values);
  }
  void integers(std::string_view name, const std::vector<std::int32_t>& values) const {
    builder_.set_integers(prefix_ + std::string(name), values);
  }
  gguf::FileBuilder& builder() const { return builder_; }

 private:
  gguf::FileBuilder& builder_;
  std::string prefix_;
};

}  // namespace pagoda::hf
