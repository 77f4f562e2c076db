# How every target of this project is compiled: C++20, warnings are errors with PAGODA_WERROR, no
# contraction of floating-point expressions (answers must not depend on what the compiler fuses).

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)  # there are none
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

add_library(pagoda_flags INTERFACE)
target_compile_options(pagoda_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  -Wold-style-cast -Wextra-semi $<$<BOOL:${PAGODA_WERROR}>:-Werror> -ffp-contract=off
  # Programs name their sources by the path in the project, wherever it was built (__FILE__).
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlaps in std::string's operator+ that are not there (GCC bug 105651).
  target_compile_options(pagoda_flags INTERFACE -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 14)
  # GCC 14 follows a std::variant's move into alternatives that it does not hold (GCC bug 80635).
  target_compile_options(pagoda_flags INTERFACE -Wno-maybe-uninitialized)
endif()
if(PAGODA_UNITY)
  # A local name may be that of a constant in another source.
  target_compile_options(pagoda_flags INTERFACE -Wno-shadow)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Of a source that another one includes GCC does not see that no second one defines its types.
    target_compile_options(pagoda_flags INTERFACE -Wno-subobject-linkage)
  endif()
endif()
if(PAGODA_DEV_CHECKS)
  target_compile_definitions(pagoda_flags INTERFACE PAGODA_DEV_CHECKS=1)
endif()
if(PAGODA_SANITIZE)
  target_compile_options(pagoda_flags INTERFACE
    -fsanitize=${PAGODA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # Beast asserts that five bytes end a chunked body. An empty one that comes byte by byte is parsed at
  # four, and rightly.
  target_compile_definitions(pagoda_flags INTERFACE BOOST_DISABLE_ASSERTS)
  target_link_options(pagoda_flags INTERFACE -fsanitize=${PAGODA_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang AND PAGODA_SANITIZE MATCHES undefined)
    # clang 14 cannot mark functions that are coroutines with their types.
    target_compile_options(pagoda_flags INTERFACE -fno-sanitize=function)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # GCC inlines one of the two operators by which Asio allocates and frees a coroutine's frame, and
    # takes them for a pair that does not match. ThreadSanitizer knows no fences; Asio has some beside
    # its locks. Of code that is watched GCC no longer sees that an empty std::optional is not read.
    target_compile_options(pagoda_flags INTERFACE
      -Wno-mismatched-new-delete -Wno-tsan -Wno-maybe-uninitialized)
    # AddressSanitizer keeps frames of functions that have returned, and those are aligned to 32 bytes;
    # GCC 13 moves vectors of 64 bytes to and from them as if they were aligned.
    include(CheckCXXCompilerFlag)
    check_cxx_compiler_flag(-Wa,-muse-unaligned-vector-move PAGODA_UNALIGNED_VECTOR_MOVES)
    if(PAGODA_UNALIGNED_VECTOR_MOVES)
      target_compile_options(pagoda_flags INTERFACE
        $<$<COMPILE_LANGUAGE:CXX>:-Wa,-muse-unaligned-vector-move>)
    endif()
  endif()
endif()
if(PAGODA_FUZZ)
  target_compile_options(pagoda_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Headers that the build writes, for those who read sources without building them (clang-tidy,
# tools/check_syntax): whatever adds one makes this depend on it.
add_custom_target(pagoda_generated_headers)

# pagoda_unite(target): with PAGODA_UNITY its sources are compiled several at a time (CMake's unity
# build), because most of a file's time goes into headers. So a name in an unnamed namespace is taken
# once in a folder (tests/tidy); what a file includes is checked by builds without, such as the
# sanitizers'. Few at a time, so that cores share the work and memory stays small.
function(pagoda_unite target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${PAGODA_UNITY} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# pagoda_optimise(target LEVEL): -O LEVEL in release builds instead of 3. 2 compiles a sixth faster, 1 a
# third: for code that no token waits for.
function(pagoda_optimise target level)
  target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O${level}>)
endfunction()

# pagoda_library(name SOURCES a.cc … DEPS lib … [OPTIMISE 1]): one folder of src/ as a static library.
function(pagoda_library name)
  cmake_parse_arguments(ARG "" "OPTIMISE" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE pagoda_flags ${ARG_PRIVATE_DEPS})
  pagoda_unite(${name})
  if(ARG_OPTIMISE)
    pagoda_optimise(${name} ${ARG_OPTIMISE})
  endif()
endfunction()

# pagoda_python_test(name PROGRAM WORD…): a Python program of tests, run by python_tests.run; one
# ctest entry.
function(pagoda_python_test name)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES
    ENVIRONMENT "PAGODA_TEST_NAME=${name};PAGODA_BINARY=${CMAKE_BINARY_DIR}/pagoda;PAGODA_SOURCE_DIR=${CMAKE_SOURCE_DIR};PAGODA_BUILT_WITH_REDIS=$<BOOL:${PAGODA_REDIS}>;PYTHONDONTWRITEBYTECODE=1"
    TIMEOUT 300 SKIP_RETURN_CODE 77)
endfunction()

# pagoda_test(name SOURCES a_test.cc … DEPS lib … [LABELS long]): one GoogleTest program, one
# ctest entry.
function(pagoda_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} pagoda_flags test_main)
  pagoda_unite(${name})
  pagoda_optimise(${name} 1)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  if(ARG_LABELS)
    set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}")
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  if(CMAKE_CROSSCOMPILING)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 20")  # an emulated core is slow
  elseif(PAGODA_SANITIZE)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 5")  # and so is one that is watched
  endif()
  set_tests_properties(${name} PROPERTIES
    ENVIRONMENT PAGODA_TEST_NAME=${name} TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77)
endfunction()
