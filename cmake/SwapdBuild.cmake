# Compiler settings and the two functions by which every target of the project is declared.
include(GNUInstallDirs)

option(SWAPD_TESTS "Build the tests" ON)
option(SWAPD_WERROR "Warnings are errors" ON)
option(SWAPD_FUZZ "Build the fuzz targets (clang)" OFF)
set(SWAPD_SANITIZE "" CACHE STRING "Value of -fsanitize=, for example address,undefined")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(SECCOMP REQUIRED IMPORTED_TARGET libseccomp)
pkg_check_modules(LIBNL REQUIRED IMPORTED_TARGET libnl-3.0 libnl-genl-3.0)
pkg_check_modules(FUSE3 REQUIRED IMPORTED_TARGET fuse3)  # swapbench
pkg_check_modules(SYSTEMD REQUIRED IMPORTED_TARGET libsystemd)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
pkg_check_modules(TOMLPLUSPLUS REQUIRED IMPORTED_TARGET tomlplusplus)

add_library(swapd_options INTERFACE)
target_include_directories(swapd_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(swapd_options INTERFACE _GNU_SOURCE)
target_compile_options(swapd_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wconversion -Wno-sign-conversion
  -Wno-missing-field-initializers -fno-omit-frame-pointer $<$<BOOL:${SWAPD_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # gcc 12 sees overlaps in "literal" + std::to_string(), where there are none (gcc bug 105651).
  target_compile_options(swapd_options INTERFACE -Wno-restrict)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # A type in a source file's unnamed namespace, in the Impl of a class: of one file, though gcc sees that another includes it.
  target_compile_options(swapd_options INTERFACE -Wno-subobject-linkage)
endif()
if(SWAPD_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)  # coverage in the library too; tests/fuzz links the driver
endif()
if(SWAPD_SANITIZE)
  add_compile_options(-fsanitize=${SWAPD_SANITIZE} -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=${SWAPD_SANITIZE})
  # gcc 12 sees uninitialised members in the instrumented std::function and std::regex.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()

# swapd_library(NAME SOURCES a.cpp … USES target…): one stage of the library, target swapd_NAME.
function(swapd_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_library(swapd_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(swapd_${name} PUBLIC swapd_options ${ARG_USES})
endfunction()

# swapd_test(NAME SOURCES a.cpp … USES target… [LABELS unit|integration] [TIMEOUT s] [SERIAL]): one GoogleTest program, test_NAME.
# Each is one ctest test; a program that calls GTEST_SKIP prints the reason and scripts/test.sh lists it.
function(swapd_test name)
  cmake_parse_arguments(ARG "SERIAL" "TIMEOUT" "SOURCES;USES;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  add_executable(test_${name} ${ARG_SOURCES})
  target_link_libraries(test_${name} PRIVATE swapd_options ${ARG_USES} GTest::gmock GTest::gtest_main)
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  # What is tested is optimised; its tests take half the time to compile without.
  target_compile_options(test_${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1 -g1>)
  include(GoogleTest)
  gtest_discover_tests(test_${name} TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} RUN_SERIAL ${ARG_SERIAL} SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
endfunction()
