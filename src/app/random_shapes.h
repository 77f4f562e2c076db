// Models by name whose weights no file holds: for measuring a shape.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "gguf/tensor_type.h"
#include "model/config.h"

namespace pagoda::app {

// An error lists the names there are.
Result<model::Config> random_shape(std::string_view name);
std::string random_shape_names();

// "bf16", "q8_0", …: the type of the matrices.
Result<gguf::TensorType> random_weight_type(std::string_view name);

}  // namespace pagoda::app
