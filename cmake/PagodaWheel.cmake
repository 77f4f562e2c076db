# A wheel of what the folder PAGODA_BUILT has built (tools/make_wheel): nothing is compiled.

add_custom_target(pagoda)  # the targets that pyproject.toml names
add_custom_target(_pagoda)
file(GLOB module ${PAGODA_BUILT}/python/pagoda/_pagoda.*.so)
if(NOT module)
  message(FATAL_ERROR "${PAGODA_BUILT} has no Python module: was it built with nanobind?")
endif()
install(PROGRAMS ${PAGODA_BUILT}/pagoda DESTINATION pagoda/bin COMPONENT python)
install(PROGRAMS ${module} DESTINATION pagoda COMPONENT python)
install(FILES ${CMAKE_SOURCE_DIR}/tests/data/models/stories260K.gguf ${CMAKE_SOURCE_DIR}/tests/data/models/README.md
  DESTINATION pagoda/models COMPONENT python)
install(DIRECTORY ${PAGODA_BUILT}/python/licences/ DESTINATION ${SKBUILD_METADATA_DIR}/licenses/linked
  COMPONENT python)
