#include "engine/engine_desk.h"

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

EngineDesk::EngineDesk(const model::Config& config, const model::Weights& weights,
                       const CpuMachineOptions& options, const kernels::KernelSet& kernels) {
  auto machine = CpuMachine::create(config, weights, kernels, options);
  ASSERT(machine.ok(), "the machine fits the model");
  machine_ = std::move(machine).value();
  core_ = std::make_unique<Core>(machine_->core_options(), machine_->cache(), tenants_,
                                 machine_->runner(), clock_);
}

std::shared_ptr<Heard> EngineDesk::submit(const Request& request) {
  const Status checked =
      check_request(request, machine_->core_options().limits, tenants_[request.tenant].limits);
  ASSERT(checked.ok(), "the request is in order");
  auto heard = std::make_shared<Heard>(request.sampling.n);
  core_->submit(RequestId(++requests_), request, heard);
  return heard;
}

bool EngineDesk::step() {
  const bool worked = core_->step();
  core_->check();
  return worked;
}

}  // namespace pagoda::engine
