// Answers never change, whatever the cache keeps keys and values as: every dtype over a model of
// every kind, bit for bit under every condition that must not matter.
#include <gtest/gtest.h>

#include <array>

#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "model/invariance_checks.h"
#include "model/kv_groups.h"
#include "model/seeded_model.h"

namespace pagoda::model {
namespace {

using gguf::TensorType;
using kv::memory::Element;
using kv::memory::Elements;

struct DtypeCase {
  ModelCase model;
  std::string name;
  KvCacheDtype dtype;
};
void PrintTo(const DtypeCase& c, std::ostream* out) { *out << c.model.name << "_" << c.name; }

struct NamedDtype {
  const char* name;
  Elements elements;
};
constexpr NamedDtype kDtypes[] = {
    {"e4m3", Element::kE4M3},
    {"e5m2", Element::kE5M2},
    {"int8", Element::kInt8},
    {"int4", Element::kInt4},
    {"k8v4", {Element::kInt8, Element::kInt4}},
    {"bf16_int8", {Element::kBF16, Element::kInt8}},
    {"int4_fp16", {Element::kInt4, Element::kF16}},
};

std::vector<DtypeCase> all_cases() {
  std::vector<DtypeCase> cases;
  // Dense, with a window in every other layer.
  for (const NamedDtype& dtype : kDtypes) {
    cases.push_back(
        {{"windows", small_shape(TensorType::kQ4_0, false)}, dtype.name, dtype.elements});
  }
  ModelShape experts = small_shape(TensorType::kBF16, true);
  experts.router = {.experts = 4, .chosen = 2};
  experts.expert_width = 256;
  experts.sinks = true;
  ModelShape heads_of_96 = small_shape(TensorType::kBF16, true);
  heads_of_96.head_dim = 96;
  heads_of_96.score_cap = 20;
  for (const NamedDtype& dtype : {kDtypes[2], kDtypes[3]}) {
    cases.push_back({{"experts_and_sinks", experts}, dtype.name, dtype.elements});
    cases.push_back({{"heads_of_96", heads_of_96}, dtype.name, dtype.elements});
  }
  // Latents: rows of 40, whose values are their first 32.
  for (const NamedDtype& dtype : {kDtypes[0], kDtypes[2]}) {
    cases.push_back({{"arch_deepseek3"}, dtype.name, dtype.elements});
  }
  // Rows of 64, whose values are their first 32: groups of 32 share a scale.
  for (const NamedDtype& dtype : {kDtypes[2], kDtypes[3]}) {
    cases.push_back({{"latents", latent_shape()}, dtype.name, dtype.elements});
  }
  // Heads of two sizes, and layers that attend to the rows of others; the small ones stay bf16.
  KvCacheDtype without_windows = Element::kInt4;
  without_windows.skip_windows = true;
  cases.push_back({{"arch_gemma4_shared"}, "int4_without_windows", without_windows});
  KvCacheDtype without_first = Elements(Element::kInt8, Element::kInt4);
  without_first.skip_layers = {0};
  cases.push_back(
      {{"windows", small_shape(TensorType::kQ8_0, false)}, "k8v4_without_first", without_first});
  return cases;
}

class KvDtypeInvariance : public testing::TestWithParam<DtypeCase> {
 protected:
  const AnyModel model_of_case_{GetParam().model};
  const ModelParts model_ = model_of_case_.parts();
  Conditions on(const kernels::KernelSet* set) const {
    return {.kernels = set, .element = GetParam().dtype};
  }
};

TEST_P(KvDtypeInvariance, NothingChangesTheLogits) {
  ASSERT_TRUE(check_kv_cache_dtype(model_.config, GetParam().dtype).ok());
  // Beyond a split of either numerics only for the sets that are fast.
  const Tokens tokens = random_tokens(model_.config, 90, 1);
  const Tokens few(tokens.begin(), tokens.begin() + 20);
  const Tokens many = random_tokens(model_.config, kernels::kInt8Bf16SplitKeys + 30, 2);
  for (const kernels::KernelSet* const set : varied_sets()) {
    const Conditions base = on(set);
    const Logits expected = plain_run(model_, on(&kernels::ref_set(set->numerics)), few);
    ASSERT_TRUE(same_bits(plain_run(model_, base, few), expected)) << set->name;
    ASSERT_TRUE(same_bits(run_without_cache(model_, base, few), expected)) << set->name;
    expect_chunks_threads_and_ids_change_nothing(model_, base, tokens, kFewWays);
    expect_neighbours_change_nothing(model_, base, 24);
  }
  expect_chunks_threads_and_ids_change_nothing(model_, on(kernels::available_sets().back()), many,
                                               kLongWays);
}

TEST_P(KvDtypeInvariance, PagesOfAnyOrderAndSizeGiveTheSameLogits) {
  const Tokens tokens = random_tokens(model_.config, 70, 3);
  for (const kernels::KernelSet* const set : varied_sets()) {
    const Logits expected = plain_run(model_, on(set), tokens);
    const kernels::KernelSet turned = with_turned_pages(*set);
    for (const kernels::KernelSet* const one : {set, &turned}) {
      for (const std::uint32_t block_tokens : {1u, 3u, 6u, 16u, 64u}) {
        Conditions conditions = on(one);
        conditions.threads = 2;
        conditions.chunk = 7;
        conditions.block_tokens = block_tokens;
        ASSERT_TRUE(same_bits(run_sequences(model_, conditions, {tokens}).front(), expected))
            << set->name << ", blocks of " << block_tokens;
      }
    }
  }
}

// What invariance cannot see: an error that is the same under all conditions. Rows that were
// rotated and not turned back, or read in another order, give logits that have nothing to do with
// the right ones: a difference of about their size. Rounding gives less, and most where it chooses
// other experts.
TEST_P(KvDtypeInvariance, LogitsAreNearThoseOfFloats) {
  const Tokens tokens = random_tokens(model_.config, 60, 4);
  const Elements elements = GetParam().dtype.elements(Element::kBF16);
  const auto holds = [&](Element element) {
    return elements.keys == element || elements.values == element;
  };
  const bool rough = holds(Element::kInt4) || holds(Element::kE5M2) || holds(Element::kE4M3) ||
                     model_.config.experts.router.experts > 0;
  for (const kernels::KernelSet* const set : varied_sets()) {
    const Logits expected = plain_run(model_, {.kernels = set, .element = Element::kF32}, tokens);
    const Logits logits = plain_run(model_, on(set), tokens);
    double difference = 0;
    double size = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      difference += std::pow(double{logits[i]} - expected[i], 2);
      size += std::pow(double{expected[i]}, 2);
    }
    EXPECT_LT(std::sqrt(difference / size), rough ? 0.4 : 0.03) << set->name;
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, KvDtypeInvariance, testing::ValuesIn(all_cases()),
                         [](const auto& instance) {
                           return instance.param.model.name + "_" + instance.param.name;
                         });

TEST(KvCacheDtypeCheck, RefusesWhatAModelCannotKeepByName) {
  const SeededModel model(small_shape(TensorType::kBF16, true));
  const TestModel small(test_model_path("stories260K.gguf"));
  EXPECT_TRUE(check_kv_cache_dtype(model.config(), Element::kInt4).ok());
  const Status heads_of_8 = check_kv_cache_dtype(small.config(), Element::kInt4);
  ASSERT_FALSE(heads_of_8.ok());
  EXPECT_EQ(heads_of_8.error().message,
            "`kv_cache_dtype`: int4 needs heads of a multiple of 32 dimensions; layer 0 has 8 key "
            "and 8 value dimensions: use int8");
  KvCacheDtype skipping = Element::kInt8;
  skipping.skip_layers = {2};
  const Status no_layer = check_kv_cache_dtype(model.config(), skipping);
  ASSERT_FALSE(no_layer.ok());
  EXPECT_EQ(no_layer.error().message,
            "`kv_cache_dtype_skip_layers`: 2, but the model has layers 0 to 1");
}

// Skipping what keeps no rows would do nothing, and nobody would know.
TEST(KvCacheDtypeCheck, RefusesToSkipWhatKeepsNoRowsOrHasNoWindow) {
  const TestModel shared(test_model_path("arch_gemma4_shared.gguf"));
  const std::uint32_t layers = shared.config().layers;
  const std::uint32_t own = layers - shared.config().shared_kv_layers;
  ASSERT_LT(own, layers);
  KvCacheDtype skipping = Element::kInt8;
  skipping.skip_layers = {own - 1};
  skipping.skip_windows = true;
  EXPECT_TRUE(check_kv_cache_dtype(shared.config(), skipping).ok());
  for (std::uint32_t layer = own; layer < layers; ++layer) {
    skipping.skip_layers = {0, layer};
    const Status no_rows = check_kv_cache_dtype(shared.config(), skipping);
    ASSERT_FALSE(no_rows.ok());
    EXPECT_EQ(no_rows.error().message,
              "`kv_cache_dtype_skip_layers`: " + std::to_string(layer) +
                  ", but that layer keeps no keys and values: layers " + std::to_string(own) +
                  " to " + std::to_string(layers - 1) + " attend to those of layers before them");
  }
  const SeededModel full(small_shape(TensorType::kBF16, true));
  skipping.skip_layers = {};
  const Status no_windows = check_kv_cache_dtype(full.config(), skipping);
  ASSERT_FALSE(no_windows.ok());
  EXPECT_EQ(no_windows.error().message,
            "`kv_cache_dtype_skip_layers`: sliding_window, but no layer of the model has a sliding "
            "window: name layers by their numbers");
}

TEST(KvCacheDtypeCheck, RefusesValuesThatDifferFromKeysWhereALatentIsBoth) {
  const TestModel model(test_model_path("arch_deepseek2.gguf"));
  ASSERT_GT(model.config().latent.rank, 0u);
  KvCacheDtype values_alone;
  values_alone.values = Element::kBF16;
  KvCacheDtype keys_alone;
  keys_alone.keys = Element::kInt8;
  for (const KvCacheDtype& refused :
       {KvCacheDtype(Elements(Element::kInt8, Element::kInt4)),
        KvCacheDtype(Elements(Element::kBF16, Element::kInt8)), values_alone}) {
    const Status status = check_kv_cache_dtype(model.config(), refused);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message,
              "`cache_type_v`: the model keeps one latent vector as key and value (MLA), so that "
              "values have the type of keys: choose both by `kv_cache_dtype`");
  }
  for (const KvCacheDtype& kept : {KvCacheDtype(), KvCacheDtype(Element::kInt8), keys_alone}) {
    EXPECT_TRUE(check_kv_cache_dtype(model.config(), kept).ok());
  }
}

// GPUs keep keys and values as one element but fp32, k8v4, and 16-bit keys with 8-bit values.
TEST(KvCacheDtypeCheck, RefusesWhatGpusDoNotKeepInsteadOfKeepingSomethingElse) {
  constexpr std::array kAll = {Element::kF32,  Element::kF16,  Element::kBF16, Element::kE4M3,
                               Element::kE5M2, Element::kInt8, Element::kInt4};
  const auto is_wide = [](Element element) {
    return element == Element::kF16 || element == Element::kBF16;
  };
  for (const Element keys : kAll) {
    for (const Element values : kAll) {
      const bool is_kept =
          (keys == values && keys != Element::kF32) ||
          (keys == Element::kInt8 && values == Element::kInt4) ||
          (is_wide(keys) && (values == Element::kInt8 || values == Element::kE4M3));
      EXPECT_EQ(check_gpu_kv_cache_dtype(Elements(keys, values)).ok(), is_kept)
          << static_cast<int>(keys) << " " << static_cast<int>(values);
    }
  }
  EXPECT_TRUE(check_gpu_kv_cache_dtype({}).ok());
  KvCacheDtype skipping = Element::kE4M3;
  skipping.skip_windows = true;
  EXPECT_TRUE(check_gpu_kv_cache_dtype(skipping).ok());
}

}  // namespace
}  // namespace pagoda::model
