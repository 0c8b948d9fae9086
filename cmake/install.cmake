# What `cmake --install` lays out: headers, the core with its backends beside it, and a package for
# find_package(Tessera). Relocatable: the core finds its backends beside itself, and nothing that is
# installed names the build machine or needs a CUDA toolkit.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Tessera)
install(TARGETS tessera EXPORT TesseraTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT sdk)
foreach(backend tessera_cpu tessera_onednn tessera_virtual tessera_cuda tessera_gloo tessera_mpi)
  if(TARGET ${backend})
    install(TARGETS ${backend} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT sdk)
  endif()
endforeach()
install(FILES ${CMAKE_BINARY_DIR}/lib/tessera_cuda.pack DESTINATION ${CMAKE_INSTALL_LIBDIR}
  COMPONENT sdk OPTIONAL)  # what `./dev pack` made
install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/tessera ${CMAKE_BINARY_DIR}/gen/tessera
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT sdk
  FILES_MATCHING PATTERN "*.h" PATTERN "*.inc")
install(EXPORT TesseraTargets NAMESPACE tessera:: DESTINATION ${package_dir} COMPONENT sdk)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/TesseraConfig.cmake.in
  ${CMAKE_BINARY_DIR}/cmake/TesseraConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/cmake/TesseraConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/cmake/TesseraConfig.cmake
  ${CMAKE_BINARY_DIR}/cmake/TesseraConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT sdk)
