// A test must be able to fail: its body checks something.
#pragma once

#include "tidy/source_text.h"

namespace pagoda::tidy {

// TEST bodies without an EXPECT_…, ASSERT_…, FAIL or ADD_FAILURE of their own, and without a call
// of a function that has one: of this file, or of another where its name begins with expect.
Findings tests_that_check_nothing(const SourceText& source);

}  // namespace pagoda::tidy
