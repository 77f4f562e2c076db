// Rows as a GPU's cache has them, and the pairs of elements that it keeps.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/reference.h"
#include "kv/memory/codec.h"
#include "kv/memory/page_layout.h"

namespace pagoda::gpu_test {

// All that kv::memory::is_gpu_pair() takes.
inline constexpr kv::memory::Elements kGpuPairs[] = {
    kv::memory::Element::kBF16,
    kv::memory::Element::kF16,
    kv::memory::Element::kE4M3,
    kv::memory::Element::kE5M2,
    kv::memory::Element::kInt8,
    kv::memory::Element::kInt4,
    {kv::memory::Element::kInt8, kv::memory::Element::kInt4},
    {kv::memory::Element::kBF16, kv::memory::Element::kInt8},
    {kv::memory::Element::kBF16, kv::memory::Element::kE4M3},
    {kv::memory::Element::kF16, kv::memory::Element::kInt8},
    {kv::memory::Element::kF16, kv::memory::Element::kE4M3}};

// "Bf16", "Int8Int4".
inline std::string cache_name(kv::memory::Elements elements) {
  const char* const names[] = {"Fp32", "Fp16", "Bf16", "Fp8", "Fp8E5M2", "Int8", "Int4"};
  const std::string keys = names[static_cast<int>(elements.keys)];
  if (elements.keys == elements.values) return keys;
  return keys + names[static_cast<int>(elements.values)];
}

// A row once it went through the cache, as kernels multiply it.
inline std::vector<float> cached_row(kv::memory::Element element, std::vector<float> row) {
  std::vector<std::byte> bytes(row.size() * 2);
  std::vector<std::byte> scales(row.size());
  const kv::memory::Row at = {.data = bytes.data(), .scale = scales.data()};
  kv::memory::encode_row(element, row.data(), row.size(), at);
  kv::memory::decode_row(element, at, row.size(), row.data());
  for (float& value : row) value = kernels::cuda::reference::cached(element, value);
  return row;
}

}  // namespace pagoda::gpu_test
