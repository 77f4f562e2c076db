// How near a real model's logits are to the oracle's on real text.
#pragma once

#include <cstddef>

#include "kernels/select.h"
#include "model/logit_fixture.h"
#include "model/test_model.h"

namespace pagoda::model {

struct AgreementBound {
  kv::memory::Element element;  // of the cache
  double top_share_min;         // positions whose most probable token is the oracle's
  double kl_mean_max;           // nats
};

// Computes the first `positions` of every window and prints both figures.
void expect_agreement(const TestModel& model, const LogitDigest& oracle,
                      const kernels::KernelSet& set, const AgreementBound& bound,
                      std::size_t positions);

}  // namespace pagoda::model
