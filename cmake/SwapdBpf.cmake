# swapd_bpf_skeleton(NAME SOURCE file.bpf.c DEPENDS header…): compiles a kernel program with clang, and makes the library
# NAME_skeleton, whose header NAME.skel.h holds the object and loads it (bpftool gen skeleton, libbpf).
find_program(SWAPD_BPF_CLANG NAMES clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14
  DOC "clang with the bpf target")
find_program(SWAPD_BPFTOOL bpftool PATHS /usr/sbin /sbin DOC "bpftool, for gen skeleton")
pkg_check_modules(LIBBPF IMPORTED_TARGET libbpf>=1.0)
foreach(needed "SWAPD_BPF_CLANG clang" "SWAPD_BPFTOOL bpftool" "LIBBPF_FOUND libbpf-dev")
  separate_arguments(needed)
  list(GET needed 0 variable)
  list(GET needed 1 package)
  if(NOT ${variable})
    message(FATAL_ERROR "the BPF programs need ${package}: apt-get install ${package} (scripts/packages.txt, section build)")
  endif()
endforeach()
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  message(FATAL_ERROR "src/sys/bpf knows the registers of x86-64 only, not of ${CMAKE_SYSTEM_PROCESSOR}")
endif()

function(swapd_bpf_skeleton name)
  cmake_parse_arguments(ARG "" "SOURCE" "DEPENDS" ${ARGN})
  set(dir ${CMAKE_CURRENT_BINARY_DIR}/${name}_skeleton)
  file(MAKE_DIRECTORY ${dir})
  # asm/types.h stands in the multiarch folder, which clang does not search for this target. ccache is of no use: the
  # skeleton is made once. gen object leaves out what is there for debuggers and keeps BTF.
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_SOURCE})
  list(TRANSFORM ARG_DEPENDS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  add_custom_command(OUTPUT ${dir}/${name}.skel.h
    COMMAND ${SWAPD_BPF_CLANG} -g -O2 -Wall -Wextra -Werror -Wno-unused-parameter -target bpf -mcpu=v3
      -D__TARGET_ARCH_x86 -idirafter /usr/include/${CMAKE_LIBRARY_ARCHITECTURE} -c ${source} -o ${dir}/${name}.o
    COMMAND ${SWAPD_BPFTOOL} gen object ${dir}/${name}.linked.o ${dir}/${name}.o
    COMMAND ${CMAKE_COMMAND} -E echo "// NOLINTBEGIN" > ${dir}/${name}.skel.h
    COMMAND ${SWAPD_BPFTOOL} gen skeleton ${dir}/${name}.linked.o name ${name} >> ${dir}/${name}.skel.h
    COMMAND ${CMAKE_COMMAND} -E echo "// NOLINTEND" >> ${dir}/${name}.skel.h
    DEPENDS ${source} ${ARG_DEPENDS}
    COMMENT "Making the BPF skeleton ${name}" VERBATIM)
  add_custom_target(${name}_skeleton_header DEPENDS ${dir}/${name}.skel.h)
  add_library(${name}_skeleton INTERFACE)
  add_dependencies(${name}_skeleton ${name}_skeleton_header)
  target_include_directories(${name}_skeleton SYSTEM INTERFACE ${dir})
  target_link_libraries(${name}_skeleton INTERFACE PkgConfig::LIBBPF)
endfunction()
