# cmake -DPROGRAM=… -DGZIP=… -DOUTPUT=… -P manual_from_help.cmake: the manual page of stagewright-ui from its --help text, so that
# both agree.
execute_process(COMMAND ${PROGRAM} --help OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\\" "\\\\" help "${help}")
string(REPLACE "-" "\\-" help "${help}")
string(REGEX REPLACE "\n\\." "\n\\\\&." help "${help}")
string(REGEX REPLACE "\n'" "\n\\\\&'" help "${help}")
file(WRITE ${OUTPUT} ".TH STAGEWRIGHT\\-UI 1 \"\" \"Stagewright\" \"User Commands\"
.SH NAME
stagewright\\-ui \\- the window of Stagewright, a workbench for pipeline\\-parallel training
.SH SYNOPSIS
.B stagewright\\-ui
.RI [ FILE \" ...] [\" options ]
.SH DESCRIPTION
Shows recorded runs of pipeline\\-parallel training as timelines and memory charts, edits their schedules, compares runs and teaches how
schedules work. With
.B \\-\\-screenshot
or
.B \\-\\-export
it draws without a display and exits. In the window, press
.B ?
for shortcuts.
.SH OPTIONS
.nf
${help}.fi
.SH SEE ALSO
.BR stagewright (1)
")
if(GZIP)
    execute_process(COMMAND ${GZIP} -9nf ${OUTPUT} COMMAND_ERROR_IS_FATAL ANY)
endif()
