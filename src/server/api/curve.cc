// GET /cache/curve.
#include "kv/curve.h"

#include "server/api/cache_advice.h"
#include "server/api/endpoints.h"

namespace pagoda::server {
namespace {

// A hit rate that cannot be known is null.
Json point(std::uint64_t blocks, std::optional<double> hit_rate, const ServedModel& model) {
  return {{"blocks", blocks},
          {"bytes", blocks * model.block_bytes},
          {"hit_rate", hit_rate ? Json(*hit_rate) : Json()}};
}

}  // namespace

Json describe_curve(const ServedModel& model) {
  const kv::CurveStats curve = model.engine.curve();
  if (curve.blocks == 0) return {{"enabled", false}};
  Json lru = Json::array();
  for (const kv::CurvePoint& at : curve.lru) lru.push_back(point(at.blocks, at.hit_rate, model));
  Json policies = Json::array();
  for (const kv::PolicyRates& rates : curve.by_policy()) {
    policies.push_back(
        {{"policy", rates.policy},
         {"points",
          {point(curve.blocks / 2, rates.half, model), point(curve.blocks, rates.same, model),
           point(curve.blocks * 2, rates.twice, model)}}});
  }
  return {{"enabled", true},
          {"policy", curve.policy},
          {"blocks", curve.blocks},
          {"bytes", curve.blocks * model.block_bytes},
          {"blocks_asked", curve.blocks_asked},
          {"sampling_rate", curve.sampling_rate},
          {"lru", std::move(lru)},
          {"policies", std::move(policies)},
          {"advice", describe_advice(model, curve)}};
}

}  // namespace pagoda::server
