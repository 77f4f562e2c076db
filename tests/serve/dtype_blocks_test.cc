#include "serve/dtype_blocks.h"

#include <gtest/gtest.h>

namespace pagoda::serve {
namespace {

using kv::memory::Element;

// 2 layers x 3 heads x 16 tokens x 2 rows of 64 values: 192 rows, in bf16 of 128 bytes.
constexpr kv::memory::PageLayout kLayout = {.elements = Element::kBF16,
                                            .block_tokens = 16,
                                            .layers = 2,
                                            .kv_heads = 3,
                                            .key_dim = 64,
                                            .value_dim = 64};

TEST(DtypeBlocks, RowsWithTheirScalesThatAreSmallerThanToday) {
  // Scales: 2 bytes a row of int8 and fp8, 2 for 32 values of int4.
  EXPECT_EQ(block_bytes_by_dtype(kLayout).dump(),
            "{\"int8\":12672,\"fp8\":12672,\"k8v4\":9792,\"int4\":6912}");
  kv::memory::PageLayout int8 = kLayout;
  int8.elements = Element::kInt8;
  EXPECT_EQ(block_bytes_by_dtype(int8).dump(), "{\"k8v4\":9792,\"int4\":6912}");
  kv::memory::PageLayout fp32 = kLayout;
  fp32.elements = Element::kF32;
  EXPECT_EQ(block_bytes_by_dtype(fp32)["bf16"], 192 * 128);
}

TEST(DtypeBlocks, OfRowsThatCanBeKeptSo) {
  kv::memory::PageLayout odd = kLayout;
  odd.key_dim = odd.value_dim = 40;
  EXPECT_FALSE(block_bytes_by_dtype(odd).contains("int4"));
  EXPECT_FALSE(block_bytes_by_dtype(odd).contains("k8v4"));
  EXPECT_TRUE(block_bytes_by_dtype(odd).contains("int8"));
  kv::memory::PageLayout latent = kLayout;
  latent.values_in_keys = true;
  EXPECT_FALSE(block_bytes_by_dtype(latent).contains("k8v4"));
  EXPECT_TRUE(block_bytes_by_dtype(latent).contains("int4"));
}

}  // namespace
}  // namespace pagoda::serve
