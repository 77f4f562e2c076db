// Test programs with threads carry the label that ThreadSanitizer's run asks for.
#pragma once

#include <map>
#include <string>

#include "tidy/source_text.h"

namespace pagoda::tidy {

// The text of each CMakeLists.txt, by its path from the root of the project.
using CMakeTexts = std::map<std::string, std::string>;

// Calls of pagoda_test without the label `threads`, though a source of theirs, a header of tests/
// that it includes or the source beside that header names what starts threads (std::thread,
// std::jthread, std::async, ThreadPool, memory_copier) or includes a header of src/ whose classes
// own a thread. Programs that need a GPU (label `gpu`) pass: ThreadSanitizer's builds have none.
PlacedFindings missing_thread_labels(const CMakeTexts& lists, const Sources& sources);

}  // namespace pagoda::tidy
