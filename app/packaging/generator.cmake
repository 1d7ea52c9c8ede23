# Read by cpack for each generator: the archive, unlike Debian's packages, is one file with all components and their libraries.
if(CPACK_GENERATOR STREQUAL "TGZ")
    set(CPACK_MONOLITHIC_INSTALL ON)
    set(CPACK_PACKAGING_INSTALL_PREFIX "")
    string(TOLOWER ${CPACK_SYSTEM_NAME} system)
    set(CPACK_PACKAGE_FILE_NAME stagewright-${CPACK_PACKAGE_VERSION}-${system}-${CPACK_STAGEWRIGHT_PROCESSOR})
    set(CPACK_PRE_BUILD_SCRIPTS ${CPACK_STAGEWRIGHT_ARCHIVE_SCRIPT})
endif()
