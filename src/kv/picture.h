// What the cache looks like at one moment, as plain values: for tools, pages and tests.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pagoda::kv {

struct NodePicture {
  std::uint32_t depth;  // blocks above, the namespace's root not counted
  std::vector<std::uint32_t> tokens;
  bool whole;        // false: an open leaf
  std::string name;  // outside, of whole blocks when the cache names them; 64 digits
  bool is_public;
  std::uint32_t children;
  std::uint32_t pages;       // of how many slices
  std::uint32_t copies;      // of them in another tier
  std::uint32_t references;  // of its most held page
};

struct CachePicture {
  struct Blocks {
    std::uint64_t all = 0;
    std::uint64_t free = 0;
    std::uint64_t filling = 0;
    std::uint64_t loading = 0;
    std::uint64_t sealed = 0;
    std::uint64_t idle = 0;
  };
  Blocks blocks;
  std::uint64_t blocks_public = 0;  // that nodes of the public region have
  std::uint64_t blocks_evicted = 0;
  std::uint64_t blocks_joined = 0;
  std::uint64_t nodes = 0;  // of all namespaces, roots not counted
  // Depth first, children in order, at most as many as asked for.
  std::vector<NodePicture> tree;
};

}  // namespace pagoda::kv
