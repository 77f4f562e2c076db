// Tests that need a GPU are skipped where there is none, and fail there under PAGODA_REQUIRE_GPU=1
// (make test-gpu).
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "device/device.h"
#include "kernels/cuda/ops.h"
#include "skip_reasons.h"

// The first line of a test that needs a GPU.
#define REQUIRE_GPU()                                                                     \
  do {                                                                                    \
    const auto opened = ::pagoda::device::open_gpu();                                     \
    if (!opened.ok()) {                                                                   \
      if (std::getenv("PAGODA_REQUIRE_GPU") != nullptr) FAIL() << opened.error().message; \
      GTEST_SKIP() << ::pagoda::kNeedsGpu << ": " << opened.error().message;              \
    }                                                                                     \
    ASSERT_TRUE(::pagoda::kernels::cuda::prepare_kernels().ok());                         \
  } while (false)
