#include "test_data.h"

namespace pagoda {

std::string source_folder() { return PAGODA_SOURCE_DIR; }
std::string test_data() { return source_folder() + "/tests/data"; }

}  // namespace pagoda
