# Writes OUTPUT, programCommit() of version.h, where the commit of SOURCE is another than at the last build.
set(commit "")
if(GIT AND EXISTS ${SOURCE}/.git)
    execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --dirty --abbrev=9 --exclude * OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[#include "app/version/version.h"

std::string_view stagewright::programCommit() { return "@commit@"; }
]] @ONLY)
