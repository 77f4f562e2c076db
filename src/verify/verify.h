// pagoda verify: the promise of the cache, shown on this machine with this model.
#pragma once

#include "verify/harness.h"

namespace pagoda::verify {

// Prints a table of digests by way, or JSON. The exit status: 0 where all ways give the same
// answers, 1 at the first difference, which is named, and where something failed; 2 where the
// questions are longer than the context; 130 after Ctrl-C.
int verify(const VerifyOptions& options);

}  // namespace pagoda::verify
