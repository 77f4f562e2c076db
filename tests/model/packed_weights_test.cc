// Weights packed for a kernel set: no two matrices overlap, and progress reaches the end.
#include "model/packed_weights.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/select.h"
#include "model/test_model.h"

namespace pagoda::model {
namespace {

class PackedWeightsTest : public testing::Test {
 protected:
  TestModel model_{test_model_path("stories260K.gguf")};
  ThreadPool pool_{2};
};

TEST_F(PackedWeightsTest, ProgressGrowsToAllThatIsPacked) {
  for (const kernels::KernelSet* const set : kernels::available_sets()) {
    std::vector<std::size_t> seen;
    std::size_t all = 0;
    const PackedWeights packed(model_.weights(), *set, pool_,
                               [&](std::size_t done, std::size_t total) {
                                 seen.push_back(done);
                                 all = total;
                               });
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end())) << set->name;
    EXPECT_EQ(seen.empty() ? 0 : seen.back(), packed.bytes()) << set->name;
    EXPECT_EQ(all, packed.bytes()) << set->name;
    EXPECT_EQ(packed.bytes() > 0, packed->output.packed != nullptr) << set->name;
  }
}

TEST_F(PackedWeightsTest, MatricesDoNotOverlap) {
  for (const kernels::KernelSet* const set : kernels::available_sets()) {
    const PackedWeights packed(model_.weights(), *set, pool_, {});
    if (packed.bytes() == 0) continue;
    const std::byte* end = nullptr;
    for (const LayerWeights& layer : packed->layers) {
      for (const Projection* const projection :
           {&layer.query, &layer.key, &layer.feed_forward.down}) {
        ASSERT_NE(projection->weight.packed, nullptr) << set->name;
        ASSERT_GE(projection->weight.packed, end) << set->name;
        end = projection->weight.packed + set->packed_bytes(projection->weight);
      }
    }
  }
}

TEST_F(PackedWeightsTest, AFileWhosePagesWereGivenBackReadsTheSame) {
  const gguf::Tensor& tensor = model_.file().tensors().front();
  const std::vector<std::byte> before(tensor.bytes.begin(), tensor.bytes.end());
  model_.file().release_pages();
  EXPECT_TRUE(std::equal(before.begin(), before.end(), tensor.bytes.begin()));
}

}  // namespace
}  // namespace pagoda::model
