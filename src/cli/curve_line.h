// The live curve in one line, for the log.
#pragma once

#include <string>

#include "kv/curve.h"

namespace pagoda::cli {

// What half and twice the memory would have given, under the policy that ran. Empty when there is
// no curve or nothing was asked for.
std::string curve_line(const kv::CurveStats& curve);

}  // namespace pagoda::cli
