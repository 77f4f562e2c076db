// The sources of the module share these functions.
#pragma once

#include <nanobind/nanobind.h>

#include "base/result.h"

namespace pagoda::python {

namespace nb = nanobind;

// Raises FileNotFoundError, ValueError or RuntimeError. The caller holds the GIL.
[[noreturn]] void raise(const Error& error);

void bind_kv(nb::module_& module);

}  // namespace pagoda::python
