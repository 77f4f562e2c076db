# The Python module (src/python): built where Python's headers and nanobind are installed.

# PyPI's nanobind lies where pip puts packages, or where tools/setup.sh does.
function(pagoda_find_nanobind)
  set(cache "$ENV{XDG_CACHE_HOME}")
  if(NOT cache)
    set(cache "$ENV{HOME}/.cache")
  endif()
  find_package(Python 3.10 COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.SABIModule)
  if(NOT Python_FOUND)
    return()
  endif()
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env "PYTHONPATH=${cache}/pagoda/programs:$ENV{PYTHONPATH}"
            ${Python_EXECUTABLE} -m nanobind --cmake_dir
    OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(PAGODA_NANOBIND_FOLDER "${folder}" PARENT_SCOPE)
endfunction()

set(PAGODA_NANOBIND_FOLDER "")
if(CMAKE_CROSSCOMPILING OR PAGODA_SANITIZE OR PAGODA_FUZZ)
  set(PAGODA_PYTHON OFF)  # Python itself is of this machine, and not watched
endif()
if(PAGODA_PYTHON)
  pagoda_find_nanobind()
  if(PAGODA_NANOBIND_FOLDER)
    find_package(Python 3.10 COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.SABIModule)
    find_package(nanobind CONFIG REQUIRED PATHS ${PAGODA_NANOBIND_FOLDER} NO_DEFAULT_PATH)
    file(WRITE ${CMAKE_BINARY_DIR}/python/interpreter "${Python_EXECUTABLE}\n")
    set(PAGODA_PYTHON ON)
  elseif(PAGODA_PYTHON STREQUAL AUTO)
    set(PAGODA_PYTHON OFF)
  else()
    message(FATAL_ERROR "PAGODA_PYTHON wants Python 3.10 or newer with its headers and nanobind: pip install nanobind")
  endif()
endif()
