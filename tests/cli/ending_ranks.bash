# Ranks in processes that end before their run does. model: an array, the options that say what is trained; ranks: how many [3]; ending: the run file.
# shellcheck shell=bash disable=SC2154
# process_of RANK: the process id of a rank of the running job
process_of() {
    local pid
    for pid in $(pgrep -P "$(pgrep -P "$job" mpirun)"); do
        [ "$(tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | sed -n 's/^OMPI_COMM_WORLD_RANK=//p')" != "$1" ] || echo "$pid"
    done
}
# end_rank RANK SIGNAL [OPTION…]: a long recording, until some steps are complete; then the signal, until it has ended
# Again where Open MPI itself ended a rank that was just reading memory of the killed one, so that none was left to say which.
end_rank() {
    for _ in 1 2 3 4 5 6 7 8; do
        end_rank_once "$@"
        grep -q 'Read -1, expected [0-9]*, errno = 3' <<<"$err" || return 0
    done
}
end_rank_once() {
    local rank=$1 signal=$2 victim i
    shift 2
    rm -f "$ending"* progress.txt
    "$STAGEWRIGHT" record -p "${ranks:-3}" -m 6 "${model[@]}" --steps 1000000 --clock wall --processes --progress jsonl "$@" -o "$ending" </dev/null >out.txt 2>progress.txt &
    job=$!
    for ((i = 0; i < 300; ++i)); do
        [ "$(cat progress.txt 2>/dev/null | grep -c '"event":"progress"')" -lt 6 ] || break
        sleep 0.1
    done
    victim=$(process_of "$rank")
    kill -s "$signal" "$victim"
    rc=0
    wait "$job" || rc=$?
    out=$(cat out.txt)
    err=$(grep -v '"event":"progress"' progress.txt)
    last="record --processes, then $signal to rank $rank ($victim)"
    steps=$(stagewright runs "$ending" --json 2>/dev/null | tr ',' '\n' | sed -n 's/.*"steps": *\([0-9]*\).*/\1/p' | head -1)
}
# expect_gone NAME: no process whose command line names it is left, at the latest in ten seconds
expect_gone() {
    local i
    for ((i = 0; i < 100; ++i)); do
        [ -n "$(pgrep -f "$1")" ] || break
        sleep 0.1
    done
    expect_same "$(pgrep -af "$1")" ''
}
