# `cpack` in a release build's folder: swapd, swapd-bench and swapd-compat as packages for Debian 12.
set(debian ${PROJECT_SOURCE_DIR}/cmake/debian)
set(SWAPD_CONTACT "Developers of swapd <swapd@example.org>" CACHE STRING "Who is named in packages")

# What Debian wants of every package.
string(TIMESTAMP SWAPD_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file(${debian}/changelog.in ${PROJECT_BINARY_DIR}/packaging/changelog @ONLY)
foreach(pair "${PROJECT_BINARY_DIR}/packaging/changelog|changelog" "${PROJECT_SOURCE_DIR}/CHANGELOG.md|NEWS")
  string(REPLACE "|" ";" pair ${pair})
  list(GET pair 0 from)
  list(GET pair 1 name)
  add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/packaging/${name}.gz
    COMMAND gzip -9nc ${from} > ${PROJECT_BINARY_DIR}/packaging/${name}.gz DEPENDS ${from} VERBATIM COMMENT "Compressing ${name}")
  list(APPEND documents ${PROJECT_BINARY_DIR}/packaging/${name}.gz)
endforeach()
add_custom_target(package_documents ALL DEPENDS ${documents})
install(FILES ${documents} ${debian}/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/swapd COMPONENT swapd)
install(FILES ${PROJECT_BINARY_DIR}/packaging/changelog.gz ${debian}/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/swapd-bench COMPONENT bench)
install(FILES ${PROJECT_BINARY_DIR}/packaging/changelog.gz ${debian}/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/swapd-compat COMPONENT compat)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME swapd)
set(CPACK_PACKAGE_CONTACT "${SWAPD_CONTACT}")
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL swapd bench compat)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_SWAPD_PACKAGE_NAME swapd)
set(CPACK_COMPONENT_SWAPD_DESCRIPTION "lends the priority of waiting programs to those they wait for
When an important program waits for one that the scheduler starves, swapd
works out who that is and lends it the waiter's priority until it has
delivered. Programs and kernel stay as they are.")
set(CPACK_DEBIAN_SWAPD_PACKAGE_DEPENDS "init-system-helpers (>= 1.54~), passwd")
set(CPACK_DEBIAN_SWAPD_PACKAGE_RECOMMENDS "dbus, polkitd")
set(CPACK_DEBIAN_SWAPD_PACKAGE_CONTROL_EXTRA ${debian}/postinst ${debian}/prerm ${debian}/postrm ${debian}/conffiles)
set(CPACK_DEBIAN_SWAPD_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_BENCH_PACKAGE_NAME swapd-bench)
set(CPACK_DEBIAN_BENCH_PACKAGE_DEPENDS "swapd (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_BENCH_DESCRIPTION "workloads that measure swapd
The workloads of the papers that swapd comes from, and others, with and
without swapd.")
set(CPACK_DEBIAN_COMPAT_PACKAGE_NAME swapd-compat)
set(CPACK_DEBIAN_COMPAT_PACKAGE_DEPENDS "swapd (= ${PROJECT_VERSION}), default-dbus-system-bus | dbus-system-bus")
foreach(field PROVIDES CONFLICTS REPLACES)
  set(CPACK_DEBIAN_COMPAT_PACKAGE_${field} "rtkit, gamemode-daemon")
endforeach()
set(CPACK_COMPONENT_COMPAT_DESCRIPTION "interfaces of gamemode and rtkit, served through swapd
Games that call gamemode's daemon and programs of sound that call rtkit are
managed by swapd, with the priority that they ask for. It takes the place of
these two.")
include(CPack)
