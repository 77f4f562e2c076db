// The seeded matrices of tests/model, for tests of GPUs.
#pragma once

#include "model/random_matrix.h"

namespace pagoda::gpu_test {

using model::random_matrix;
using model::RandomMatrix;
using model::uniform;

}  // namespace pagoda::gpu_test
