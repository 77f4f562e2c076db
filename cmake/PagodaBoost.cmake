# Boost::headers (Asio and Beast are used), Boost 1.81 or newer: what the system installed with its
# CMake files, or a folder of headers alone, wherever find_path looks.
set(PAGODA_BOOST_OLDEST 1.81)
find_package(Boost ${PAGODA_BOOST_OLDEST} QUIET CONFIG)
if(NOT TARGET Boost::headers)
  find_path(PAGODA_BOOST_INCLUDE boost/version.hpp)
  if(NOT PAGODA_BOOST_INCLUDE)
    message(FATAL_ERROR "Boost was not found: ${PAGODA_BOOST_OLDEST} or newer is needed")
  endif()
  file(STRINGS ${PAGODA_BOOST_INCLUDE}/boost/version.hpp line REGEX "define BOOST_LIB_VERSION")
  string(REGEX REPLACE ".*\"([0-9_]+)\".*" "\\1" Boost_VERSION "${line}")
  string(REPLACE "_" "." Boost_VERSION "${Boost_VERSION}")
  if(Boost_VERSION VERSION_LESS PAGODA_BOOST_OLDEST)
    message(FATAL_ERROR "Boost ${Boost_VERSION} in ${PAGODA_BOOST_INCLUDE} is too old: "
      "${PAGODA_BOOST_OLDEST} or newer is needed")
  endif()
  add_library(Boost::headers INTERFACE IMPORTED)
  target_include_directories(Boost::headers SYSTEM INTERFACE ${PAGODA_BOOST_INCLUDE})
endif()
