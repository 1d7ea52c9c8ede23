# Hosts over a real sshd on the loopback address: the list, what is refused, recording there, cut connections, attaching, stopping, installing.
# shellcheck shell=bash
export HOME=$PWD/home XDG_CONFIG_HOME='' XDG_STATE_HOME=''
mkdir -p home
tiny=(--model 'layers=4,hidden=32,heads=2,seq=16' --microbatch-size 1 -p 2 -m 4 --clock virtual)

# what can't be a host
run stagewright hosts list
expect_code 0
expect_out 'no hosts; add one with: stagewright hosts add NAME SSH-TARGET'
for target in -oProxyCommand=touch\ pwned -G 'a b' ''; do
    run stagewright hosts add bad -- "$target"
    [ -n "$target" ] || run stagewright hosts add bad ''
    expect_code 2
done
expect_no_file pwned
run stagewright hosts add '../x' node1
expect_code 2
expect_err "can't be the name of a host"
run stagewright hosts add x node1 --setup $'echo a\necho b'
expect_code 2
expect_err 'control character'
run stagewright hosts add x node1 --folder relative
expect_code 2
run stagewright hosts fly
expect_code 2
expect_err "did you mean|actions are add, test"
run stagewright hosts test nowhere
expect_code 2
expect_err "there is no host 'nowhere'"
run stagewright record --host nowhere
expect_code 2
run stagewright record --detach
expect_code 2
expect_err 'needs --host or --slurm'
expect_no_file home/.config/stagewright/hosts.json

# kept for the user only, by name
run stagewright hosts add far node1.invalid --setup 'module load cuda'
expect_code 0
run stagewright hosts add near node2.invalid
expect_same "$(stat -c %a home/.config/stagewright/hosts.json)" 600
run stagewright hosts list --json
expect_json far hosts 0 name
expect_json 'module load cuda' hosts 0 setup 0
run stagewright hosts remove near
expect_code 0
run stagewright hosts list --json
expect_json 1 hosts
XDG_CONFIG_HOME=$PWD/other run stagewright hosts list
expect_out 'no hosts'
printf '{"hosts": [{"name": "a", "target": "-oProxyCommand=touch pwned"}]}' >home/.config/stagewright/hosts.json
run stagewright hosts list
expect_code 3
expect_err "hosts.json: host a: target '-oProxyCommand=touch pwned' starts with '-'"
printf '{"hosts": [' >home/.config/stagewright/hosts.json
run stagewright record --host a
expect_code 3
expect_err 'hosts.json: it is not JSON'
rm home/.config/stagewright/hosts.json

# --host of import has another name now
run stagewright import --host nothing.json
expect_err '--host is now --host-ops'

# shellcheck source=../support/daemons.bash
source "$SOURCE/../support/daemons.bash"
if ! command -v ssh >/dev/null || ! why=$(daemons_fetch openssh-server libwrap0) || ! sshd_start >start.log 2>&1; then
    echo "skipped: recording on a host needs ssh and a real sshd: ${why:-$(cat start.log 2>/dev/null || echo 'ssh is not on PATH')}"
    [ $failures -eq 0 ] || finish
    exit 77
fi
trap daemons_stop EXIT
scratch="$PWD/scratch with 'quotes' \$HOME"
path=$(dirname "$STAGEWRIGHT")
# a job removes its run file there once it has ended, as its steps are in the stream: kept here for a comparison
mkdir keeps
printf '#!/bin/sh\n[ ! -f run.stagewright ] || cp run.stagewright kept.stagewright\nexec /bin/rm "$@"\n' >keeps/rm
chmod +x keeps/rm
run stagewright hosts add test test --scratch "$scratch" --folder "$PWD/inst alled" --setup "export PATH='$PWD/keeps:$path':\$PATH" --setup 'export STAGEWRIGHT_PRODUCTS=table'
expect_code 0

# what is there; what can't be reached
run stagewright hosts test test --json
expect_code 0
expect_json ON usable
expect_json stagewright facts 0 key
run stagewright hosts test test
expect_out 'free space for jobs +[0-9.]+ GiB'
for target in stranger nokey; do stagewright hosts add $target $target 2>/dev/null; done
run stagewright hosts test stranger
expect_code 4
expect_err 'Host key verification failed'
expect_err 'keys are never accepted for you'
run stagewright hosts test nokey
expect_code 4
expect_err 'Permission denied'
expect_err 'ControlMaster'
# where a login asks for a code: over the connection that its user opened by hand
sed 's/^Host nokey/Host coded/; /^Host/!b' <(sed -n '/^Host nokey/,$p' "$SSH_FOLDER/config") >coded
{ cat coded; echo "    ControlPath $SSH_FOLDER/%n"; } >>"$SSH_FOLDER/config"
run stagewright hosts add coded coded --setup "export PATH='$path':\$PATH"
run stagewright hosts test coded
expect_code 4
"$STAGEWRIGHT_SSH" -M -N -f -o ControlPath="$SSH_FOLDER/coded" test 2>master.log
run stagewright hosts test coded
expect_code 0
"$STAGEWRIGHT_SSH" -O exit -o ControlPath="$SSH_FOLDER/coded" test 2>>master.log
run stagewright hosts add gone nowhere.invalid
run stagewright record --host gone "${tiny[@]}" -o none.stagewright
expect_code 4
expect_err 'host gone can.t be reached: .*nowhere.invalid'
expect_no_file none.stagewright
run stagewright hosts add bare test --folder /nowhere --setup 'export PATH=/usr/bin:/bin'
run stagewright record --host bare "${tiny[@]}" -o none.stagewright
expect_code 4
expect_err 'stagewright is not there'
expect_err 'stagewright hosts install bare'
# an older end is named
mkdir -p old/bin
printf '#!/bin/sh\n[ "$1" != --version ] || exec echo stagewright 0.0.9\nexec "%s" "$@" | sed "s/\\"version\\":\\"[^\\"]*\\"/\\"version\\":\\"0.0.9\\"/"\n' "$STAGEWRIGHT" >old/bin/stagewright
chmod +x old/bin/stagewright
run stagewright hosts add old test --folder "$PWD/old"
run stagewright hosts test old
expect_code 1
expect_out '0.0.9, .*both ends need the same; stagewright hosts install old'

# the same run as here; files go along
losses() { stagewright sql "$1" "SELECT step, printf('%.17g', value) FROM metrics WHERE name='loss' AND run=${2:-1}"; }
spans() { stagewright sql "$1" "SELECT run, count(*), sum(start_ns), sum(end_ns), sum(rank * 31 + stage * 7 + microbatch) FROM spans GROUP BY run"; }
stagewright schedules 1f1b -p 2 -m 4 --csv >"it's mine.csv" 2>/dev/null || stagewright export -s 1f1b -p 2 -m 4 -o "it's mine.csv" >/dev/null 2>&1
[ -s "it's mine.csv" ] || printf '0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n' >"it's mine.csv"
head -c 20000 "$STAGEWRIGHT" >data.bin
run stagewright record -s "it's mine.csv" -s zb-h1 "${tiny[@]}" --data data.bin --steps 5 -o here.stagewright
expect_code 0
run stagewright record -s "it's mine.csv" -s zb-h1 "${tiny[@]}" --data data.bin --steps 5 --host test --json -o there.stagewright
expect_code 0
expect_json 2 runs
expect_json complete runs 0 state
expect_json "it's mine.csv" runs 0 name
expect_same "$(losses there.stagewright)" "$(losses here.stagewright)"
expect_same "$(losses there.stagewright 2)" "$(losses here.stagewright 2)"
run stagewright runs there.stagewright --verify
expect_code 0
expect_same "$(spans there.stagewright)" "$(spans "$scratch"/*/kept.stagewright)"
run stagewright record "${tiny[@]}" --steps 3 --host test --progress jsonl -o there.stagewright
expect_code 0
expect_err '"event":"run","run":3,'
expect_err '"event":"progress","what":"step","done":4,"total":4,.*"run":3,'
expect_err "\"event\":\"done\",\"file\":\"there.stagewright\",\"runs\":\\[3\\]"
run stagewright hosts jobs --json
expect_json 2 jobs
expect_json ended jobs 0 state
expect_json 4 jobs 0 steps
expect_no_out "$(stagewright sql there.stagewright "SELECT count(*) FROM run_text WHERE value LIKE '%scratch%'" | tail -1 | grep -x 1 || echo 'a host is in the run file')"
run stagewright record "${tiny[@]}" --steps 2 --backend cuda --host test -o none.stagewright # fails there
expect_that 'it fails as it would here' [ "$rc" -ge 4 ]
expect_err 'job test-.* on test: '
expect_no_file none.stagewright
if [ -f "$(dirname "$STAGEWRIGHT")/libstagewright_mpi.so" ] && command -v mpirun >/dev/null; then
    run stagewright record -s "it's mine.csv" -s zb-h1 "${tiny[@]}" --data data.bin --steps 5 --processes --host test -o processes.stagewright
    expect_code 0
    expect_same "$(losses processes.stagewright)" "$(losses here.stagewright)"
fi
run stagewright check -s "it's mine.csv" --host test --json
expect_code 0
expect_json ON passed
run stagewright devices --host test
expect_code 0
expect_out '^cpu '

# connections cut at random moments: every complete step is here, once
steady=(--model 'layers=8,hidden=64,heads=2,seq=32' --microbatch-size 1 -p 2 -m 4 --clock virtual)
cut_connections() { # cut_connections COUNT FILE
    local i before now=0
    "$STAGEWRIGHT" record "${steady[@]}" --steps 1000000 --host test -o "$2" </dev/null >out.txt 2>err.txt &
    client=$!
    expect_that 'steps arrive while it runs' wait_for "$2" 5
    for ((i = 0; i < $1; ++i)); do
        sleep "0.$(shuf -i 10-99 -n 1)"
        sshd_cut || { sleep 0.5; sshd_cut; } || true
        before=$now
        now=$(steps_in "$2")
        [ $((i % 2)) = 0 ] || wait_for "$2" $((now + 1)) || true # every other cut may hit a connection that is being made
        expect_that "steps don't get fewer: $now after $before" [ "$now" -ge "$before" ]
    done
    if [ "$1" -ge 50 ]; then # a connection that is silent, as after a link went down
        kill -STOP "$(pgrep -P "$SSHD_PID" | head -n 1)"
        sleep 25
        now=$(steps_in "$2")
    fi
    expect_that 'it goes on after the last cut' wait_for "$2" $((now + 10))
    kill -INT $client
    rc=0
    wait $client || rc=$?
    out=$(cat out.txt) err=$(cat err.txt) last="record --host with $1 cuts"
    expect_code 130
    local there
    there=$(ls -td "$scratch"/*/ | head -n 1)kept.stagewright
    expect_same "$(spans "$2")" "$(spans "$there")"
    expect_same "$(losses "$2" | cksum)" "$(losses "$there" | cksum)"
    run stagewright runs "$2" --verify
    expect_code 0
}
cut_connections "${CUTS:-3}" cut.stagewright
echo "$(steps_in cut.stagewright) steps, ${CUTS:-3} cuts"

# stopped from another terminal while this one follows it
"$STAGEWRIGHT" record "${steady[@]}" --steps 1000000 --host test -o other.stagewright </dev/null >out.txt 2>err.txt &
client=$!
expect_that 'steps arrive' wait_for other.stagewright 5
run stagewright hosts fetch
expect_code 4
expect_err 'another program is recording into it'
run stagewright hosts stop
expect_err 'was asked to stop'
rc=0
wait $client || rc=$?
expect_code 130

# this end is killed: the job goes on; attach brings everything, into the same run
"$STAGEWRIGHT" record "${steady[@]}" --steps 1000000 --host test -o killed.stagewright </dev/null >out.txt 2>err.txt &
client=$!
expect_that 'steps arrive' wait_for killed.stagewright 5
kill -9 $client
wait $client 2>/dev/null || true
run stagewright runs killed.stagewright --json
expect_json interrupted runs 0 state
run stagewright hosts fetch
expect_code 0
expect_out 'test-.*: running, [0-9]+ of 1000001 steps are in .*killed.stagewright'
fetched=$(steps_in killed.stagewright)
expect_that "more are here: $fetched" [ "$fetched" -ge 5 ]
run stagewright hosts jobs --ask
expect_out 'test +[0-9-]+ [0-9:]+ +running'
run stagewright hosts stop
expect_code 0
run stagewright hosts jobs --json
expect_json ended jobs 0 state
expect_same "$(spans killed.stagewright)" "$(spans "$(ls -td "$scratch"/*/ | head -n 1)kept.stagewright")"
run stagewright runs killed.stagewright --json
expect_json 1 runs
# a run file that was lost comes again from what is kept here
rm killed.stagewright
run stagewright hosts attach
expect_code 130
expect_same "$(spans killed.stagewright)" "$(spans "$(ls -td "$scratch"/*/ | head -n 1)kept.stagewright")"

# who follows a job may leave it: it goes on
id=$(stagewright record "${steady[@]}" --steps 1000000 --host test --detach -o left.stagewright 2>/dev/null)
"$STAGEWRIGHT" hosts attach "$id" </dev/null >out.txt 2>err.txt &
client=$!
expect_that 'steps arrive' wait_for left.stagewright 5
kill -INT $client
rc=0
wait $client || rc=$?
err=$(cat err.txt)
expect_code 130
expect_err "is not followed any more, and goes on there"
run stagewright hosts jobs --ask --json
expect_json running jobs 0 state
run stagewright hosts stop "$id"
expect_code 0

# code 0 without a step: as of a job whose tasks were never launched
id=$(stagewright record "${tiny[@]}" --steps 5 --host test --detach -o empty.stagewright 2>/dev/null)
for ((i = 0; i < 100; ++i)); do [ -e "$scratch/$id/ended.json" ] && break; sleep 0.1; done
: >"$scratch/$id/steps.stream"
: >"$scratch/$id/events.jsonl"
echo 'srun: task 3 launch failed' >"$scratch/$id/log"
run stagewright hosts attach "$id"
expect_code 5
expect_err 'ended without a step; the last lines of its log'
expect_err 'task 3 launch failed'
expect_that "it is not said to be recorded" eval '! grep -q "recorded in" <<<"$err"'

# killed over there: said, with what was complete
id=$(stagewright record "${steady[@]}" --steps 1000000 --host test --detach -o dead.stagewright 2>/dev/null)
expect_that 'it is detached' [ -n "$id" ]
run stagewright hosts fetch "$id"
expect_code 0
for ((i = 0; i < 100; ++i)); do [ "$(steps_in "$scratch/$id/run.stagewright" || echo 0)" -lt 4 ] 2>/dev/null || break; sleep 0.1; done
kill -9 -- "-$(cut -d' ' -f1 "$scratch/$id/process")"
run stagewright hosts attach "$id"
expect_code 5
expect_err 'it was killed or crashed'
expect_that 'its steps are here' [ "$(steps_in dead.stagewright)" -ge 3 ]
run stagewright hosts forget "$id"
expect_code 0
expect_no_file "$scratch/$id"

# damaged and hostile bytes end in a sentence; steps before them stay
id=$(stagewright record "${tiny[@]}" --steps 5 --host test --detach -o damaged.stagewright 2>/dev/null)
for ((i = 0; i < 600; ++i)); do [ -e "$scratch/$id/ended.json" ] && break; sleep 0.1; done
size=$(stat -c %s "$scratch/$id/steps.stream")
printf 'hostile' | dd of="$scratch/$id/steps.stream" bs=1 seek=$((size * 2 / 3)) conv=notrunc 2>/dev/null
printf '{"event":"warning","message":"\033[2Jgone\\u001b[2J"}\nnot json\n{"event":"progress","run":99,"total":1e300}\n' >>"$scratch/$id/events.jsonl"
run stagewright hosts attach "$id"
expect_code 3
expect_err 'the stream of steps is damaged at byte [0-9]+'
expect_that 'steps before it stay' [ "$(steps_in damaged.stagewright)" -ge 1 ]
expect_that 'no escape sequence reaches the terminal' bash -c '! grep -q $'"'\\033'"' err.txt out.txt'
mkdir -p liar/bin
printf '#!/bin/sh\nhead -c 100000 /dev/zero | tr "\\0" x\n' >liar/bin/stagewright
chmod +x liar/bin/stagewright
run stagewright hosts add liar test --folder "$PWD/liar"
run stagewright devices --host liar
expect_code 3
expect_err "what the host sends is not stagewright's"

# the program goes there with its libraries, and runs without those that are here
run stagewright hosts add fresh test --folder "$PWD/inst alled" --scratch "$PWD/fresh"
run stagewright hosts test fresh
expect_code 1
expect_out 'stagewright hosts install fresh'
run stagewright hosts install fresh
expect_code 0
expect_out 'fresh: stagewright [0-9.]+ in .*/inst alled/bin/stagewright \([0-9]+ files'
expect_file "inst alled/lib/libsqlite3.so.0"
run stagewright record "${tiny[@]}" --steps 2 --host fresh -o fresh.stagewright
expect_code 0
expect_same "$(grep -c "inst alled/bin/stagewright" fresh/*/job.sh)" 1

# the link to it goes down and comes up again
if [ "${CUTS:-3}" -ge 50 ]; then
    daemons_stop
    if sshd_start "sw$$" >start.log 2>&1; then
        "$STAGEWRIGHT" record "${steady[@]}" --steps 1000000 --host test -o link.stagewright </dev/null >out.txt 2>err.txt &
        client=$!
        expect_that 'steps arrive' wait_for link.stagewright 5
        for i in 1 2; do
            link_down
            sleep 25
            expect_that 'the lost connection is shown' grep -q 'the job keeps running there; trying again' err.txt
            before=$(steps_in link.stagewright)
            link_up
            expect_that 'it goes on' wait_for link.stagewright $((before + 50))
        done
        kill -INT $client
        rc=0
        wait $client || rc=$?
        expect_code 130
        expect_same "$(spans link.stagewright)" "$(spans "$(ls -td "$scratch"/*/ | head -n 1)kept.stagewright")"
    else
        echo "a link that goes down: skipped: $(cat start.log)"
    fi
fi
