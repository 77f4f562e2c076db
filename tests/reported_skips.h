// GoogleTest counts a skipped test as passed; here it shows.
#pragma once

namespace pagoda {

// ctest takes this exit status for "skipped" (SKIP_RETURN_CODE in cmake/PagodaTargets.cmake).
inline constexpr int kSkippedStatus = 77;

// RUN_ALL_TESTS, except that
//   - each skipped test is a line of the file that PAGODA_SKIPS_FILE names: program, test and
//     reason, with tabs between them (tools/run_tests reads it);
//   - the status is kSkippedStatus where tests were skipped and none did anything else.
int run_tests();

}  // namespace pagoda
