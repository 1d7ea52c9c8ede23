# The completion offers verbs, options, schedules and files.
# shellcheck shell=bash disable=SC1091,SC2034
source "$SOURCE/../../app/cli/completion/stagewright.bash"
offers() { # offers WORD…: completions of the last word
    COMP_WORDS=("$STAGEWRIGHT" "$@")
    COMP_CWORD=$#
    COMPREPLY=()
    set +e
    _stagewright 2>/dev/null
    set -e
    out=$(printf '%s\n' "${COMPREPLY[@]:-}")
    last="complete: $*" err='' rc=0
}
touch a.csv b.txt
stagewright simulate -o c.stagewright >/dev/null 2>&1
offers ''
expect_out '^record$'
expect_out '^simulate$'
offers rep
expect_same "$out" report
offers simulate --mic
expect_same "$out" --microbatches
offers simulate --schedule gpi
expect_same "$out" gpipe
offers simulate --schedule zb-h1,gpi
expect_same "$out" zb-h1,gpipe
offers simulate --schedule a
expect_out '^a.csv$'
offers validate ''
expect_out '^a.csv$'
expect_no_out 'b.txt'
offers report ''
expect_out '^c.stagewright$'
expect_no_out 'a.csv'
offers report c.stagewright ''
expect_out '^1f1b$'
offers explore ''
expect_out '^memory$'
expect_out '^uneven$'
offers explore state --reduce l
expect_same "$out" late
offers explore line --schedules 1f1b,gpi
expect_same "$out" 1f1b,gpipe
offers script ''
expect_out '^kubernetes$'
offers record --launcher j
expect_same "$out" jsrun
offers record --clock v
expect_same "$out" virtual
