// Any bytes are either refused or give a File whose every view can be read.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/assert.h"
#include "gguf/file.h"
#include "gguf/printable.h"
#include "kernels/ref/dequantise.h"

namespace pagoda {
namespace {

constexpr std::uint64_t kElementsMax = 4096;  // dequantised per tensor

// Keeps reads from being optimised away.
volatile std::uint64_t touched = 0;

void touch(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0;
  for (const std::byte byte : bytes) sum += std::to_integer<std::uint64_t>(byte);
  touched = touched + sum;
}

void touch(std::string_view text) { touch(std::as_bytes(std::span(text))); }

void read_metadata(const gguf::Metadata& metadata) {
  for (const auto& [key, value] : metadata.entries()) {
    ASSERT(!key.empty(), "empty keys are refused");
    touch(key);
    touch(gguf::printable(key, 40));
    (void)metadata.unsigned_value(key).ok();
    (void)metadata.number_or(key, 0).ok();
    (void)metadata.flag_or(key, false).ok();
    (void)metadata.integers(key).ok();
    (void)metadata.floats(key).ok();
    (void)metadata.flags(key).ok();
    if (const auto text = metadata.text(key); text.ok()) touch(text.value());
    if (const auto texts = metadata.texts(key); texts.ok()) {
      for (const std::string_view text : texts.value()) touch(text);
    }
  }
}

void read_tensor(const gguf::Tensor& tensor) {
  const gguf::TensorTypeInfo& type = gguf::tensor_type_info(tensor.type);
  ASSERT(tensor.extents[0] % type.block_elements == 0, "rows are whole blocks");
  ASSERT(tensor.elements() / type.block_elements * type.block_bytes == tensor.bytes.size(),
         "a tensor has the bytes of its shape");
  touch(tensor.name);
  touch(tensor.bytes);
  if (!type.readable) return;
  const std::uint64_t elements =
      std::min(tensor.elements(), kElementsMax / type.block_elements * type.block_elements);
  std::vector<float> out(elements);
  kernels::ref::dequantise_row(tensor.type, tensor.bytes.data(), out.data(), elements);
}

void parse(std::span<const std::byte> bytes) {
  const Result<gguf::File> parsed = gguf::File::parse(bytes, "fuzz");
  if (!parsed.ok()) {
    ASSERT(parsed.error().message.starts_with("fuzz: "), "a message names its source");
    return;
  }
  const gguf::File& file = parsed.value();
  read_metadata(file.metadata());
  for (const gguf::Tensor& tensor : file.tensors()) {
    ASSERT(file.find_tensor(tensor.name) == &tensor, "every tensor is found by its name");
    read_tensor(tensor);
  }
}

}  // namespace
}  // namespace pagoda

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  pagoda::parse(std::as_bytes(std::span(data, size)));
  return 0;
}
