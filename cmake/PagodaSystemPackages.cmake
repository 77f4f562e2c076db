# `pip install .` cannot install packages of the system: it names those that are missing.
execute_process(COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tools/missing_packages
  OUTPUT_VARIABLE missing OUTPUT_STRIP_TRAILING_WHITESPACE)
if(missing)
  string(REPLACE "\n" " " missing "${missing}")
  message(FATAL_ERROR
    "Packages of the system are missing: ${missing}\n"
    "On Debian and Ubuntu: sudo apt-get install ${missing}\n"
    "tools/setup.sh knows their names on other systems, and ./run installs them.")
endif()
