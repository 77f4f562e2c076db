#include <gtest/gtest.h>

#include "device/device_fixture.h"
#include "kernels/cuda/open_gpu.h"
#include "kernels/cuda/ops.h"

namespace pagoda::gpu_test {
namespace {

namespace cuda = kernels::cuda;
using kv::memory::Element;
using kv::memory::PageLayout;

// More copies than one launch takes, of every length a block has, against the host's copy_rows().
TEST(CopyRowsTest, CopiesTheFirstRowsWithTheirScalesAndNoOtherByte) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  for (const Element element : {Element::kF16, Element::kBF16, Element::kE4M3}) {
    for (const std::uint32_t block : {16u, 128u}) {
      for (const std::uint32_t dim : {64u, 256u}) {
        const PageLayout layout = {.element = element,
                                   .block_tokens = block,
                                   .layers = 3,
                                   .kv_heads = 2,
                                   .key_dim = dim,
                                   .value_dim = dim,
                                   .unused_bytes = 256};
        const std::uint32_t pairs = block + 1;
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
          if (copy.tokens == block) continue;  // a whole page: the host copies its unused bytes too
          kv::memory::copy_rows(layout, pages.data() + copy.from * layout.page_bytes(),
                                pages.data() + copy.to * layout.page_bytes(), copy.tokens);
        }
        const std::vector<std::byte> got = gpu.fetch<std::byte>(on_gpu, pages.size());
        const std::size_t used = layout.page_bytes() - layout.unused_bytes;
        std::copy_n(
            pages.begin() + static_cast<std::ptrdiff_t>(2 * block * layout.page_bytes()), used,
            pages.begin() + static_cast<std::ptrdiff_t>((2 * block + 1) * layout.page_bytes()));
        ASSERT_EQ(got, pages) << kv::memory::format_name(layout);
      }
    }
  }
}

}  // namespace
}  // namespace pagoda::gpu_test
