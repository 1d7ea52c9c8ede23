# A soak: a recording that goes on all the time, beside others that are read, exported, merged, compacted, killed and resumed, for MINUTES [30].
#   STAGEWRIGHT=PROGRAM bash soak.bash [MINUTES [CSV]]
# Each row of the CSV is one interval [60 s]: resident memory and open files of the long recording, what it has recorded, disk in use with what its steps keep,
# temporary files, calls so far. Fails where memory, files or disk grow beyond what the steps keep, a call ends with another code than a documented
# one, or an announced step is missing after a kill.
# shellcheck shell=bash
set -u
export LC_ALL=C.UTF-8 STAGEWRIGHT_PRODUCTS=table
minutes=${1:-30}
csv=$(realpath -m "${2:-soak.csv}")
interval=${INTERVAL:-60}
seconds=${SECONDS_IN_ALL:-$((minutes * 60))}
work=$(mktemp -d "$PWD/soak.XXXXXX") && cd "$work" || exit 1
slow=(--model 'layers=4,hidden=64,heads=2,seq=64' --microbatch-size 2 -p 2 -m 4 --clock virtual) # tens of steps in a second: a disk holds an hour of them
tiny=(--model 'layers=2,hidden=8,heads=1,seq=8' --microbatch-size 1 -p 2 -m 4 --clock virtual)
export TMPDIR=$PWD/temporary
mkdir -p "$TMPDIR"
calls=0
problems=0
complain() {
    problems=$((problems + 1))
    echo "soak: $*" >&2
}
# call CODES WORDS…: the program ends with one of these codes
call() {
    local codes=$1 rc=0
    shift
    timeout 120 "$STAGEWRIGHT" "$@" </dev/null >out.txt 2>err.txt || rc=$?
    calls=$((calls + 1))
    case " $codes " in *" $rc "*) ;; *) complain "code $rc of: $* ($(head -c 300 err.txt))" ;; esac
}
value() { "$STAGEWRIGHT" sql "$1" "$2" --csv 2>/dev/null | tail -n 1; }
kilobytes() { awk '/^VmRSS/ {print $2}' "/proc/$1/status" 2>/dev/null || echo 0; }

"$STAGEWRIGHT" record "${slow[@]}" --steps 100000000 -o long.stagewright --progress jsonl >/dev/null 2>long.jsonl &
long=$!
trap 'kill "$long" 2>/dev/null; wait 2>/dev/null' EXIT
for _ in $(seq 100); do [ -s long.stagewright ] && break; sleep 0.2; done

# one round of everything that can be done beside it
round() {
    local number=$1 steps kept pid
    call 0 record "${tiny[@]}" --steps 20 -o a.stagewright
    call 0 record "${tiny[@]}" -s gpipe --steps 20 -o b.stagewright
    call 0 report a.stagewright --json
    call 0 runs long.stagewright
    call 0 sql long.stagewright 'SELECT count(*), max(value) FROM metrics'
    call 0 export a.stagewright -o a.json
    call 0 export b.stagewright -o b.csv
    call 0 import a.json -o imported.stagewright
    call 0 runs a.stagewright --merge b.stagewright
    call 0 runs a.stagewright --compact
    call 0 runs a.stagewright --verify
    # killed where it stands: every announced step is there, and the file is recorded into again
    rm -f killed.jsonl
    "$STAGEWRIGHT" record "${tiny[@]}" --steps 1000000 -o killed.stagewright --progress jsonl >/dev/null 2>killed.jsonl &
    pid=$!
    sleep "0.$((number % 7 + 3))"
    kill -KILL $pid
    wait $pid 2>/dev/null
    steps=$(grep -o '"step_number":[0-9]*' killed.jsonl | tail -n 1 | cut -d: -f2)
    kept=$(value killed.stagewright 'SELECT max(steps) FROM runs WHERE run=(SELECT max(run) FROM runs)')
    [ "${steps:-0}" -le 1 ] || [ "${kept:-0}" -ge "$steps" ] || complain "$steps steps were announced before a kill, ${kept:-0} are kept"
    call 0 record "${tiny[@]}" --steps 5 -o killed.stagewright
    call 0 runs killed.stagewright --verify
    "$STAGEWRIGHT" export b.stagewright -o cut.html >/dev/null 2>&1 &
    pid=$!
    sleep 0.05
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
    call 0 export b.stagewright -o cut.html # removes what the killed one left
    [ "$(find . -maxdepth 1 -name '*.part-*' | wc -l)" = 0 ] || complain "parts of killed exports stay: $(ls -- *.part-*)"
    rm -f a.stagewright b.stagewright a.json b.csv imported.stagewright cut.html
    [ $((number % 10)) != 0 ] || rm -f killed.stagewright
}

echo 'seconds,rss_kb,open_files,steps,disk_kb,log_kb,temporary_files,calls,problems' >"$csv"
began=$SECONDS
next=$interval
number=0
first_rss=0 first_files=0
while [ $((SECONDS - began)) -lt "$seconds" ]; do
    number=$((number + 1))
    round $number
    kill -0 $long 2>/dev/null || { complain 'the long recording has ended'; break; }
    [ $((SECONDS - began)) -ge "$next" ] || continue
    next=$((next + interval))
    rss=$(kilobytes $long)
    files=$(find "/proc/$long/fd" -mindepth 1 2>/dev/null | wc -l)
    steps=$(grep -c '"step_number"' long.jsonl)
    disk=$(($(stat -c %s long.stagewright) / 1024))
    log=$(($(stat -c %s long.stagewright-wal 2>/dev/null || echo 0) / 1024))
    temporary=$(find "$TMPDIR" -mindepth 1 | wc -l)
    echo "$((SECONDS - began)),$rss,$files,$steps,$disk,$log,$temporary,$calls,$problems" | tee -a "$csv"
    if [ "$first_rss" = 0 ]; then
        first_rss=$rss
        first_files=$files
    fi
    # memory: a few numbers a step stay for the end's figures; files: none; disk: what a step keeps, and the log
    [ "$rss" -le $((first_rss + 32768 + steps / 8)) ] || complain "the recorder's memory grows: $rss KB, $first_rss after the first interval"
    [ "$files" -le $((first_files + 2)) ] || complain "the recorder's open files grow: $files, $first_files after the first interval"
    [ "$disk" -le $((4096 + steps * 4)) ] || complain "$steps steps take $disk KB"
    [ "$log" -le 16384 ] || complain "SQLite's log has $log KB"
    [ "$temporary" = 0 ] || complain "temporary files stay: $(ls "$TMPDIR")"
done
kill -TERM $long 2>/dev/null
wait $long 2>/dev/null
trap - EXIT
steps=$(grep '"step_number"' long.jsonl | grep -o '"step_number":[0-9]*' | tail -n 1 | cut -d: -f2)
kept=$(value long.stagewright 'SELECT max(steps) FROM runs')
[ "${kept:-0}" -ge "${steps:-0}" ] || complain "$steps steps were announced, ${kept:-0} are kept"
call 0 runs long.stagewright --verify
left=$(find . -maxdepth 1 \( -name '*-wal' -o -name '*-lock' -o -name '*.part-*' \) | wc -l)
[ "$left" = 0 ] || complain "files stay: $(find . -maxdepth 1 \( -name '*-wal' -o -name '*-lock' -o -name '*.part-*' \))"
echo "$number rounds, $calls calls, $steps steps of the long recording, $problems problems"
[ $problems != 0 ] || rm -rf "$work"
[ $problems = 0 ] && [ "$(wc -l <"$csv")" -gt 1 ]
