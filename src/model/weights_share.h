// The part of a model's weights that one rank multiplies by (division.h).
#pragma once

#include "model/division.h"
#include "model/weights.h"

namespace pagoda::model {

// Returns the rows of every matrix that the rank computes the outputs of; they stay in the model's
// file. Norms, embedding, routers and the projections down to latents stay whole, because every
// rank computes them; experts of other ranks have no rows.
Weights share_weights(const Weights& weights, const Config& config, const Division& division);

}  // namespace pagoda::model
