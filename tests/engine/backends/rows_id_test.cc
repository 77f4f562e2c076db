// The names under which stores keep rows: what is stored in another format is never found.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "engine/backends/cpu_backend.h"
#include "kernels/select.h"
#include "model/seeded_model.h"

namespace pagoda::engine {
namespace {

using kv::memory::Element;

std::string rows_id(const model::SeededModel& model, const model::KvCacheDtype& dtype) {
  BackendOptions options;
  options.threads = 1;
  options.kv_bytes = 4 << 20;
  options.kv_cache_dtype = dtype;
  const auto backend =
      CpuBackend::create(model.config(), model.weights(), kernels::ref_set(), options);
  EXPECT_TRUE(backend.ok()) << (backend.ok() ? "" : backend.error().message);
  return backend.ok() ? backend.value()->rows_id() : "";
}

TEST(RowsId, LayersThatKeepAnotherElementChangeIt) {
  const model::SeededModel model(model::small_shape(gguf::TensorType::kBF16, true));
  const auto skipping = [](std::vector<std::uint32_t> layers) {
    model::KvCacheDtype dtype = Element::kInt8;
    dtype.skip_layers = std::move(layers);
    return dtype;
  };
  std::set<std::string> seen;
  EXPECT_TRUE(seen.insert(rows_id(model, Element::kInt8)).second);
  EXPECT_TRUE(seen.insert(rows_id(model, Element::kInt4)).second);
  EXPECT_TRUE(seen.insert(rows_id(model, kernels::ref_set().kv_element)).second);
  EXPECT_TRUE(seen.insert(rows_id(model, skipping({0}))).second) << "skip 0";
  EXPECT_TRUE(seen.insert(rows_id(model, skipping({1}))).second) << "skip 1 is as skip 0";
  EXPECT_EQ(rows_id(model, skipping({0, 1})), rows_id(model, kernels::ref_set().kv_element))
      << "all layers keep the default";
  EXPECT_EQ(rows_id(model, skipping({1})), rows_id(model, skipping({1})));
}

}  // namespace
}  // namespace pagoda::engine
