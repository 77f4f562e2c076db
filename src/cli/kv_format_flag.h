// The formats of KV elements as flags of `size` and `plan` name them.
#pragma once

#include <string>

#include "app/kv_size.h"
#include "base/result.h"

namespace pagoda::cli {

inline constexpr const char* kKvFormatHelp =
    "fp32, bf16, fp16, fp8, fp8_e5m2, int8, k8v4 or int4, as serve names them (f16, q8_0, q4_0, "
    "bf16/int8 too), or fp4, for comparison alone (bf16)";
inline constexpr const char* kElementBytesFlag = "--bytes-per-element";
inline constexpr const char* kElementBytesHelp =
    "instead: 4 (fp32), 2 (bf16) or 1 (fp8_e5m2) bytes of an element, without scales";

// Takes every name that --kv-cache-dtype of serve takes; "auto" is bf16. An error names `flag` and
// lists the formats.
Result<app::KvFormat> kv_format_named(const std::string& flag, const std::string& name);

// The format whose elements have so many bytes and no scales: "4", "2", "2.0" or "1".
Result<app::KvFormat> kv_format_of_bytes(const std::string& bytes);

}  // namespace pagoda::cli
