#include <gtest/gtest.h>

#include "device/device_fixture.h"
#include "kernels/cuda/attention/cached_row.h"
#include "kernels/cuda/open_gpu.h"
#include "kernels/cuda/ops.h"

namespace pagoda::gpu_test {
namespace {

namespace cuda = kernels::cuda;
using kv::memory::Element;
using kv::memory::PageLayout;

// More copies than one launch takes, of every length a block has, against the host's copy_rows().
void expect_rows_copied(const PageLayout& layout) {
  DeviceFixture gpu;
  const std::uint32_t pairs = layout.block_tokens + 1;
  std::vector<std::byte> pages(2 * pairs * layout.page_bytes());
  for (std::size_t i = 0; i < pages.size(); ++i) {
    pages[i] = static_cast<std::byte>(i * 2654435761u >> 13);
  }
  std::vector<cuda::BlockCopy> copies;
  for (std::uint32_t i = 0; i < pairs; ++i) copies.push_back({2 * i, 2 * i + 1, i});
  const device::Buffer on_gpu = gpu.send(pages);
  cuda::launch_copy_rows({.pages = on_gpu.data(), .layout = layout, .copies = copies},
                         gpu.stream().handle());
  for (const cuda::BlockCopy& copy : copies) {
    kv::memory::copy_rows(layout, pages.data() + copy.from * layout.page_bytes(),
                          pages.data() + copy.to * layout.page_bytes(), copy.tokens);
  }
  ASSERT_EQ(gpu.fetch<std::byte>(on_gpu, pages.size()), pages) << kv::memory::format_name(layout);
}

TEST(CopyRowsTest, CopiesTheFirstRowsWithTheirScalesAndNoOtherByte) {
  REQUIRE_GPU();
  for (const kv::memory::Elements elements : kGpuPairs) {
    for (const std::uint32_t block : {16u, 128u}) {
      PageLayout layout = {.elements = elements,
                           .block_tokens = block,
                           .layers = 3,
                           .kv_heads = 2,
                           .unused_bytes = 256};
      for (const std::uint32_t dim : {64u, 80u, 256u}) {
        if (dim % kv::memory::dimension_multiple(elements.values) != 0) continue;
        layout.key_dim = layout.value_dim = dim;
        expect_rows_copied(layout);
      }
      if (elements.keys != elements.values) continue;
      layout.kv_heads = 1;
      layout.key_dim = 576;
      layout.value_dim = 512;
      layout.values_in_keys = true;
      layout.unused_bytes = 0;
      expect_rows_copied(layout);
    }
  }
}

// Blocks that begin in the batch are cleared, no others and no row.
TEST(ClearUnusedTest, ZerosWhatPagesLeaveUnusedWhereABlockBegins) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  const PageLayout layout = {.elements = Element::kBF16,
                             .block_tokens = 16,
                             .layers = 2,
                             .kv_heads = 1,
                             .key_dim = 16,
                             .value_dim = 16,
                             .unused_bytes = 4128};
  std::vector<std::byte> pages(6 * layout.page_bytes(), std::byte{0x5A});
  const std::vector<cuda::BatchSequence> sequences = {{0, 3, 15, 0}, {3, 1, 32, 2}, {4, 1, 3, 5}};
  const std::vector<cuda::BatchToken> batch = {
      {0, cuda::kNotSampled, 15, 0}, {0, cuda::kNotSampled, 16, 0},
      {0, cuda::kNotSampled, 17, 0}, {0, cuda::kNotSampled, 32, 1},
      {0, cuda::kNotSampled, 3, 2},  {0, cuda::kNotSampled, cuda::kNoPosition, 0}};
  const std::vector<std::uint32_t> tables = {4, 2, 0, 1, 5, 3};
  const device::Buffer pages_on_gpu = gpu.send(pages);
  const device::Buffer sequences_on_gpu = gpu.send(sequences);
  const device::Buffer batch_on_gpu = gpu.send(batch);
  const device::Buffer tables_on_gpu = gpu.send(tables);
  cuda::launch_clear_unused(
      {.batch_tokens = batch_on_gpu.as<cuda::BatchToken>(),
       .sequences = sequences_on_gpu.as<cuda::BatchSequence>(),
       .pages = {pages_on_gpu.data(), layout, 0, tables_on_gpu.as<std::uint32_t>()},
       .rows = static_cast<std::uint32_t>(batch.size())},
      gpu.stream().handle());
  for (const std::size_t page : {2, 5}) {  // of position 16 and of position 32
    const auto end = pages.begin() + static_cast<std::ptrdiff_t>((page + 1) * layout.page_bytes());
    std::fill(end - static_cast<std::ptrdiff_t>(layout.unused_bytes), end, std::byte{0});
  }
  ASSERT_EQ(gpu.fetch<std::byte>(pages_on_gpu, pages.size()), pages);
}

}  // namespace
}  // namespace pagoda::gpu_test
