// The quality gate judges KV policies that requests name.
#include "serve/policy_verdicts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "eval/cache_home.h"
#include "kernels/select.h"
#include "serve/kv_verdicts.h"
#include "test_data.h"

namespace pagoda::serve {
namespace {

using eval::GateMode;
using Verdict = server::PolicyQuality::Verdict;

// StoryKv is stories260K as it would be served.
struct StoryKv {
  ServeOptions options = {};
  std::unique_ptr<app::ServedSource> source =
      app::ServedSource::open(test_data() + "/models/stories260K.gguf", {}, {},
                              *kernels::select_set().value())
          .value();
  std::unique_ptr<engine::Backend> backend = make_backend();

  std::unique_ptr<engine::Backend> make_backend() const {
    engine::BackendOptions sizes;
    sizes.threads = 1;
    sizes.kv_bytes = 1 << 20;
    return source->create_backend({.kind = app::DeviceKind::kCpu}, sizes).value();
  }
  std::unique_ptr<PolicyVerdicts> verdicts() const {
    return PolicyVerdicts::create(options, *source, *backend).value();
  }
  void keep(const kv::KvPolicy& policy, double kl_mean, std::uint64_t positions = 2000) const {
    eval::Measurement made;
    made.divergence = {.rows = positions, .kl_mean = kl_mean, .same_top = 0.99};
    const std::atomic<bool> stop{false};
    ASSERT_TRUE(app::VerdictStore::of_user()
                    .write(model_fingerprint(*source, stop).value(),
                           {.key = kv_key(options, *backend, policy),
                            .measured_s = 1,
                            .settings = "settings",
                            .result = eval::measurement_json(made)})
                    .ok());
  }
};

constexpr kv::KvPolicy kPassing = {.window = 40, .sinks = 4};
constexpr kv::KvPolicy kFailing = {.window = 40};
constexpr kv::KvPolicy kFew = {.window = 48};

TEST(PolicyVerdicts, AreThoseOfEvalForTheFormatThatIsServed) {
  const CacheHome home;
  StoryKv story;
  story.options.kv_quality_gate = GateMode::kRefuse;
  story.keep(kPassing, 0.001);
  story.keep(kFailing, 0.5);
  const auto verdicts = story.verdicts();
  EXPECT_EQ(verdicts->judge(kPassing).verdict, Verdict::kPasses);
  EXPECT_FALSE(verdicts->judge(kPassing).is_refused);
  const auto failing = verdicts->judge(kFailing);
  EXPECT_EQ(failing.verdict, Verdict::kFails);
  EXPECT_TRUE(failing.is_refused);
  EXPECT_THAT(failing.reason, testing::HasSubstr("@window:40: "));
  const auto unmeasured = verdicts->judge(kv::KvPolicy::h2o(64));
  EXPECT_EQ(unmeasured.verdict, Verdict::kUnmeasured);
  EXPECT_TRUE(unmeasured.is_refused);
  story.keep(kFew, 0.001, 32);
  const auto few = verdicts->judge(kFew);
  EXPECT_EQ(few.verdict, Verdict::kUnmeasured) << "32 positions are no verdict";
  EXPECT_TRUE(few.is_refused);
  // The same policy beside another format is another configuration.
  story.options.kv_cache_dtype = kv::memory::Element::kInt8;
  EXPECT_EQ(story.verdicts()->judge(kPassing).verdict, Verdict::kUnmeasured);
}

// Nothing waits for the model's fingerprint where nothing is refused.
TEST(PolicyVerdicts, WarnSaysThemOnceTheModelIsKnown) {
  const CacheHome home;
  StoryKv story;
  story.keep(kPassing, 0.001);
  const auto verdicts = story.verdicts();
  server::PolicyQuality::Judgement judged = verdicts->judge(kPassing);
  EXPECT_EQ(judged.verdict, Verdict::kUnmeasured);
  for (int i = 0; i < 1000 && judged.verdict == Verdict::kUnmeasured; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    judged = verdicts->judge(kPassing);
  }
  EXPECT_EQ(judged.verdict, Verdict::kPasses);
  EXPECT_FALSE(verdicts->judge(kv::KvPolicy::h2o(64)).is_refused);
}

TEST(PolicyVerdicts, AreNotAskedForWhereTheGateIsOff) {
  const CacheHome home;
  StoryKv story;
  story.options.kv_quality_gate = GateMode::kOff;
  EXPECT_EQ(story.verdicts(), nullptr);
}

}  // namespace
}  // namespace pagoda::serve
