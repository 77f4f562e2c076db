// Any bytes are either refused or give tensors that cover the file's data without overlaps.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "hf/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  const auto tensors = pagoda::hf::parse_safetensors(file, "fuzz");
  if (!tensors.ok()) {
    ASSERT(!tensors.error().message.empty(), "an error says something");
    return 0;
  }
  std::size_t bytes = 0;
  for (const pagoda::hf::SafeTensor& tensor : tensors.value()) {
    ASSERT(tensor.bytes.data() >= file.data() &&
               tensor.bytes.data() + tensor.bytes.size() <= file.data() + size,
           "a tensor lies in the file");
    ASSERT(tensor.bytes.data() == file.data() + tensor.offset, "the offset is that of the bytes");
    bytes += tensor.bytes.size();
  }
  ASSERT(bytes <= size - 8, "tensors do not overlap");
  return 0;
}
