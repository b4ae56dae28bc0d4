# What `cmake --install` puts where, and with SwapdPackage.cmake into which package.
foreach(program swapd swapctl swapbench)
  if(TARGET ${program})
    set(where ${CMAKE_INSTALL_BINDIR})
    set(package swapd)
    if(program STREQUAL swapd)
      set(where ${CMAKE_INSTALL_SBINDIR})
    elseif(program STREQUAL swapbench)
      set(package bench)
    endif()
    install(TARGETS ${program} RUNTIME DESTINATION ${where} COMPONENT ${package})
  endif()
endforeach()
install(TARGETS swapd-guard swapd-attach RUNTIME DESTINATION libexec/swapd COMPONENT swapd)
install(TARGETS swapd-compat RUNTIME DESTINATION libexec/swapd COMPONENT compat)

# swapd_install(DESTINATION FILE…)
function(swapd_install destination)
  install(FILES ${ARGN} DESTINATION ${destination} COMPONENT swapd)
endfunction()

# The prefix is known for certain only when it is installed.
install(CODE "
  set(SWAPD_SBINDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_SBINDIR}\")
  set(SWAPD_BINDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
  set(SWAPD_LIBEXECDIR \"\${CMAKE_INSTALL_PREFIX}/libexec/swapd\")
  foreach(unit swapd swapd-attach@ swapd-guard@)
    configure_file(\"${PROJECT_SOURCE_DIR}/systemd/\${unit}.service.in\" \"${PROJECT_BINARY_DIR}/\${unit}.service\" @ONLY)
  endforeach()"
  COMPONENT swapd)
swapd_install(lib/systemd/system ${PROJECT_BINARY_DIR}/swapd.service ${PROJECT_BINARY_DIR}/swapd-attach@.service
  ${PROJECT_BINARY_DIR}/swapd-guard@.service systemd/swapd-attach.socket systemd/swapd-guard.socket)
# swapd-compat stands in the place of rtkit and of gamemode's daemon: a package of its own, which conflicts with theirs.
install(CODE "
  set(SWAPD_LIBEXECDIR \"\${CMAKE_INSTALL_PREFIX}/libexec/swapd\")
  foreach(unit swapd-rtkit swapd-gamemode com.feralinteractive.GameMode)
    configure_file(\"${PROJECT_SOURCE_DIR}/systemd/\${unit}.service.in\" \"${PROJECT_BINARY_DIR}/\${unit}.service\" @ONLY)
  endforeach()"
  COMPONENT compat)
install(FILES ${PROJECT_BINARY_DIR}/swapd-rtkit.service DESTINATION lib/systemd/system COMPONENT compat)
install(FILES ${PROJECT_BINARY_DIR}/swapd-gamemode.service DESTINATION lib/systemd/user COMPONENT compat)
install(FILES systemd/org.freedesktop.RealtimeKit1.service DESTINATION ${CMAKE_INSTALL_DATADIR}/dbus-1/system-services COMPONENT compat)
install(FILES ${PROJECT_BINARY_DIR}/com.feralinteractive.GameMode.service DESTINATION ${CMAKE_INSTALL_DATADIR}/dbus-1/services COMPONENT compat)
install(FILES systemd/org.swapd1.compat.conf DESTINATION ${CMAKE_INSTALL_DATADIR}/dbus-1/system.d COMPONENT compat)
install(FILES systemd/org.swapd1.compat.policy DESTINATION ${CMAKE_INSTALL_DATADIR}/polkit-1/actions COMPONENT compat)
swapd_install(lib/systemd/system-preset systemd/90-swapd.preset)
swapd_install(lib/systemd/catalog systemd/swapd.catalog)
foreach(what sysusers tmpfiles)
  install(FILES systemd/swapd.${what}.conf RENAME swapd.conf DESTINATION lib/${what}.d COMPONENT swapd)
endforeach()
swapd_install(${CMAKE_INSTALL_DATADIR}/doc/swapd/examples systemd/examples/swapd-managed.slice systemd/examples/managed-service.conf
  systemd/examples/managed-slice.toml)
swapd_install(${CMAKE_INSTALL_DATADIR}/dbus-1/system.d systemd/org.swapd1.conf)
swapd_install(${CMAKE_INSTALL_DATADIR}/dbus-1/system-services systemd/org.swapd1.service)
swapd_install(${CMAKE_INSTALL_DATADIR}/dbus-1/interfaces systemd/org.swapd1.xml)
swapd_install(${CMAKE_INSTALL_DATADIR}/polkit-1/actions systemd/org.swapd1.policy)
swapd_install(${CMAKE_INSTALL_DATADIR}/polkit-1/rules.d systemd/swapd.rules)
swapd_install(${CMAKE_INSTALL_DATADIR}/bash-completion/completions src/cli/completions/swapctl.bash)
swapd_install(${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions src/cli/completions/_swapctl)
swapd_install(${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d src/cli/completions/swapctl.fish)

# For containers: one for each runtime, of no other program's calls.
foreach(runtime crun runc)
  set(profile ${PROJECT_BINARY_DIR}/oci/unconfined-${runtime}.json)
  add_custom_command(OUTPUT ${profile}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/oci
    COMMAND swapd --config /dev/null --oci-profile --oci-runtime ${runtime} > ${profile}
    DEPENDS swapd VERBATIM COMMENT "Making the profile for containers of ${runtime}")
  list(APPEND profiles ${profile})
endforeach()
add_custom_target(oci_profiles ALL DEPENDS ${profiles})
swapd_install(${CMAKE_INSTALL_DATADIR}/swapd/oci ${profiles})

swapd_install(${CMAKE_INSTALL_DATADIR}/swapd/dashboards dashboards/swapd.json)

# The first is read wherever it is installed; the others are there to be linked into /etc/swapd/policies.d.
swapd_install(lib/swapd/policies.d policies/10-protected.toml)
swapd_install(${CMAKE_INSTALL_DATADIR}/swapd/policies policies/00-defaults.toml policies/batch-io.toml policies/build-host.toml
  policies/database.toml policies/desktop.toml policies/paper-2004.toml policies/thin-client.toml)
# An administrator's own is never replaced; an install elsewhere, for a try, leaves /etc alone.
install(CODE "
  if((NOT \"\$ENV{DESTDIR}\" STREQUAL \"\" OR CMAKE_INSTALL_PREFIX MATCHES \"^/usr(/local)?\$\") AND NOT EXISTS \"\$ENV{DESTDIR}/etc/swapd/swapd.toml\")
    file(INSTALL \"${PROJECT_SOURCE_DIR}/systemd/swapd.toml\" DESTINATION /etc/swapd)
    file(MAKE_DIRECTORY \"\$ENV{DESTDIR}/etc/swapd/policies.d\")
  endif()"
  COMPONENT swapd)

# Manual pages, as Debian has them: compressed. swapd-policy(5) is docs/policy.md, org.swapd1(5) the introspection's XML.
find_program(LOWDOWN lowdown)
find_program(XSLTPROC xsltproc)
set(pages docs/man/swapctl.1 docs/man/swapd.8 docs/man/swapd-compat.8 docs/man/swapd.conf.5)
if(XSLTPROC)
  add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/man/org.swapd1.5
    COMMAND ${XSLTPROC} --novalid --nonet -o ${PROJECT_BINARY_DIR}/man/org.swapd1.5
      ${PROJECT_SOURCE_DIR}/systemd/man-page.xsl ${PROJECT_SOURCE_DIR}/systemd/org.swapd1.xml
    DEPENDS systemd/man-page.xsl systemd/org.swapd1.xml VERBATIM COMMENT "Making org.swapd1(5)")
  list(APPEND pages ${PROJECT_BINARY_DIR}/man/org.swapd1.5)
else()
  message(STATUS "xsltproc is missing: there will be no org.swapd1(5)")
endif()
if(LOWDOWN)
  add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/man/swapd-policy.5
    COMMAND ${PROJECT_SOURCE_DIR}/docs/man/policy-page.sh ${LOWDOWN} ${PROJECT_SOURCE_DIR}/docs/policy.md
      > ${PROJECT_BINARY_DIR}/man/swapd-policy.5
    DEPENDS docs/policy.md docs/man/policy-page.sh VERBATIM COMMENT "Making swapd-policy(5)")
  list(APPEND pages ${PROJECT_BINARY_DIR}/man/swapd-policy.5)
else()
  message(STATUS "lowdown is missing: there will be no swapd-policy(5)")
endif()
foreach(page ${pages})
  cmake_path(ABSOLUTE_PATH page BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
  cmake_path(GET page FILENAME name)
  string(REGEX MATCH "[0-9]$" section ${name})
  add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/man/${name}.gz
    COMMAND gzip -9nc ${page} > ${PROJECT_BINARY_DIR}/man/${name}.gz DEPENDS ${page} VERBATIM COMMENT "Compressing ${name}")
  list(APPEND compressed ${PROJECT_BINARY_DIR}/man/${name}.gz)
  set(package swapd)
  if(name STREQUAL swapd-compat.8)
    set(package compat)
  endif()
  install(FILES ${PROJECT_BINARY_DIR}/man/${name}.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT ${package})
endforeach()
add_custom_target(man ALL DEPENDS ${compressed})
