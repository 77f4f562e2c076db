// The kernel sets of this program, which of them this CPU runs, and which one is used.
#pragma once

#include <string>

namespace pagoda::inspect {

// For people.
std::string kernels_text();
// One JSON value and a newline.
std::string kernels_json();

}  // namespace pagoda::inspect
