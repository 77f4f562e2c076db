#include "engine/engine_fixture.h"

#include <bit>

#include "base/assert.h"

namespace pagoda::engine {
namespace {

bool same(const TokenLogprob& a, const TokenLogprob& b) {
  return a.token == b.token && a.rank == b.rank &&
         std::bit_cast<std::uint32_t>(a.logprob) == std::bit_cast<std::uint32_t>(b.logprob);
}

}  // namespace

const model::TestModel& stories() {
  static const model::TestModel kModel(model::test_model_path("stories260K.gguf"));
  return kModel;
}

bool same_scores(const std::vector<TokenScore>& a, const std::vector<TokenScore>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const TokenScore& x, const TokenScore& y) {
        return same(x.chosen, y.chosen) &&
               std::equal(x.top.begin(), x.top.end(), y.top.begin(), y.top.end(), same);
      });
}

EngineFixture::EngineFixture(const model::Config& config, const model::Weights& weights,
                             const BackendOptions& options, const kernels::KernelSet& kernels,
                             speculate::Drafter* drafter) {
  auto backend = CpuBackend::create(config, weights, kernels, options);
  ASSERT(backend.ok(), "the backend fits the model");
  backend_ = std::move(backend).value();
  open(drafter);
}

EngineFixture::EngineFixture(std::unique_ptr<Backend> backend, speculate::Drafter* drafter)
    : backend_(std::move(backend)) {
  open(drafter);
}

void EngineFixture::open(speculate::Drafter* drafter) {
  CoreOptions core_options = backend_->core_options();
  core_options.drafter = drafter;
  core_ =
      std::make_unique<Core>(core_options, backend_->cache(), tenants_, backend_->runner(), clock_);
}

std::shared_ptr<TestSink> EngineFixture::submit(const Request& request) {
  RequestLimits limits = backend_->core_options().limits;
  limits.hidden_width = backend_->runner().hidden_width();
  const Status checked = check_request(request, limits, tenants_[request.tenant].limits);
  ASSERT(checked.ok(), "the request is in order");
  auto heard = std::make_shared<TestSink>(request.sampling.n);
  core_->submit(RequestId(++requests_), request, heard);
  return heard;
}

bool EngineFixture::step() {
  const bool worked = core_->step();
  core_->check();
  return worked;
}

}  // namespace pagoda::engine
