# One program for each .cpp of a folder, in ${CMAKE_BINARY_DIR}/<folder>, with the backends beside the core.
function(tessera_programs folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${folder}_${name} ${source})
    target_link_libraries(${folder}_${name} PRIVATE tessera::tessera tessera_flags)
    set_target_properties(${folder}_${name} PROPERTIES
      OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${folder})
    add_dependencies(${folder}_${name} tessera_cpu tessera_virtual)
  endforeach()
endfunction()
