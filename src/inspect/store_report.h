// A disk store, looked at from outside: what it holds, and whether it is whole.
#pragma once

#include <string>

#include "base/result.h"

namespace pagoda::inspect {

struct StoreInspection {
  std::string path;
  bool verify = false;  // reads every page
  bool json = false;
};

// Prints it. True: nothing is damaged, as far as was looked.
Result<bool> inspect_store(const StoreInspection& inspection);

}  // namespace pagoda::inspect
