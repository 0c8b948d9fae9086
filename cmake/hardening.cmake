# Hardening of the libraries and programs. tools/check/elf.py reads it back from the built files.
#
# Link options apply to every target. Compile options apply to shipped code only: tests, examples and
# benchmarks are compiled without them.
include(CheckCXXCompilerFlag)
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)
# All symbols are resolved at load, and the tables of addresses are read-only afterwards.
add_link_options(LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)

set(hardening -fstack-protector-strong)
# Calls into other libraries read the read-only table themselves: one jump less for each.
check_cxx_compiler_flag(-fno-plt TESSERA_HAS_NO_PLT)
if(TESSERA_HAS_NO_PLT)
  list(APPEND hardening -fno-plt)
endif()
# Endbr64 and shadow stacks on x86; other processors have no such option.
check_cxx_compiler_flag(-fcf-protection=full TESSERA_HAS_CF_PROTECTION)
if(TESSERA_HAS_CF_PROTECTION)
  list(APPEND hardening -fcf-protection=full)
endif()
# Fortified functions need optimisation, and hide calls from the sanitizers' interceptors.
if(NOT TESSERA_SANITIZE)
  list(APPEND hardening
    $<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE>
    $<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-D_FORTIFY_SOURCE=3>)
endif()

# Adds the compile options to those of the named targets that exist.
function(tessera_harden)
  foreach(target ${ARGN})
    if(TARGET ${target})
      target_compile_options(${target} PRIVATE ${hardening})
    endif()
  endforeach()
endfunction()
