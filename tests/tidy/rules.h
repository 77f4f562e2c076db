// Rules that look at one file by itself. Each is a pure function from a file to what is wrong.
#pragma once

#include "tidy/source_text.h"

namespace pagoda::tidy {

inline constexpr int kLinesMax = 500;
inline constexpr int kCudaLinesMax = 600;
inline constexpr std::size_t kColumnsMax = 100;

// At most 500 lines, 600 in a .cu.
Findings file_too_long(const SourceText& source);

// At most 100 columns; a column is a UTF-8 code point.
Findings lines_too_long(const SourceText& source);

// No tab, no carriage return, no blank at a line's end; outside raw strings and in them.
Findings stray_blanks(const SourceText& source);

Findings missing_pragma_once(const SourceText& source);

// Words that say nothing, as part of a file name or of an identifier ("block_util", "PoolManager"),
// and types that begin with Base. Names after std:: are not ours and pass, as do #include lines.
Findings empty_names(const SourceText& source);

// A CUDA call that works on the legacy default stream: cudaMemcpy, cudaMemset and the like without
// Async, and <<<>>> launches. Our streams are non-blocking, so that nothing orders them with it.
Findings legacy_stream_work(const SourceText& source);

// Functions of the C library whose last bits differ from one host to the next (std::sin, expf,
// ::pow), where answers are computed: engine, gguf, hf, kernels, kv, model. The CUDA kernels'
// reference, which tests compare within bounds, passes, and so do a GPU's own functions in .cu and
// .cuh, which have no std::.
Findings library_mathematics(const SourceText& source);

// A // line that reads like a statement, and #if 0. Told from prose by its shape (an assignment, a
// call, a return, the head of a block) together with its last character, ';' or '{'. Lines indented
// by three or more after the slashes are examples in documentation and pass.
Findings commented_out_code(const SourceText& source);

}  // namespace pagoda::tidy
