# What `cmake --install` puts where.
install(TARGETS swapd RUNTIME DESTINATION ${CMAKE_INSTALL_SBINDIR})
install(TARGETS swapctl swapbench RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
