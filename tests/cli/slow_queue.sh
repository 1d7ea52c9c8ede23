# Slurm's programs that are slow, never end, print without end or lie, in place of the real ones: the link holds, and the number of the job is kept.
# shellcheck shell=bash
export XDG_CONFIG_HOME=$PWD/config XDG_STATE_HOME=$PWD/state
tiny=(--model 'layers=4,hidden=32,heads=2,seq=16' --microbatch-size 1 -p 2 -m 2 --clock virtual --steps 1)
mkdir -p fake
export PATH=$PWD/fake:$PATH
program() { { echo '#!/bin/sh'; cat; } >fake/$1 && chmod +x fake/$1; }
program squeue <<<'echo "PENDING|Priority||1:00"'
program sacct <<<'exit 1'
program scontrol <<<'exit 1'
program scancel <<<'echo "$@" >>cancelled'

# an sbatch that takes longer than a link may be silent
program sbatch <<<'sleep 22; echo 4711'
run stagewright record "${tiny[@]}" --slurm nodes=1 --detach -o slow.stagewright
expect_code 0
run stagewright hosts jobs --json
expect_json 4711 jobs 0 slurm_job
expect_json queued jobs 0 state

# whoever waits for it leaves: the queue's number is kept all the same
rm -rf state
program sbatch <<<'sleep 3; echo 4712'
"$STAGEWRIGHT" record "${tiny[@]}" --slurm nodes=1 --detach -o left.stagewright >out.txt 2>err.txt </dev/null &
client=$!
for ((i = 0; i < 200; ++i)); do [ -z "$(find state -name submitting 2>/dev/null)" ] || break; sleep 0.05; done
kill -INT $client
rc=0 last='record --slurm, interrupted while sbatch runs'
wait $client || rc=$?
out='' err=$(cat err.txt)
expect_code 130
expect_err 'it may have started'
for ((i = 0; i < 200; ++i)); do [ -z "$(find state -name slurm)" ] || break; sleep 0.05; done
expect_same "$(cat "$(find state -name slurm)")" 4712

# it is killed with whoever called sbatch: the queue is asked for the job by its name
number=$(find state -name slurm)
printf '1 1 %s other\n' "$(uname -n)" >"${number%slurm}submitting"
rm "$number"
program squeue <<'SH'
case "$*" in *--name=slurm-*) echo 4713 ;; *) echo 'PENDING|Priority||1:00' ;; esac
SH
job=$(basename "$(dirname "$number")")
run timeout 20 "$STAGEWRIGHT" hosts fetch "$job"
expect_same "$(cat "$number")" 4713

# programs that print without end, or not a number
program squeue <<<'exit 1'
for words in 'yes' 'yes >&2' 'echo x' 'echo'; do
    rm -rf state
    program sbatch <<<"$words"
    (ulimit -v 2000000 && exec "$STAGEWRIGHT" record "${tiny[@]}" --slurm nodes=1 -o never.stagewright) >out.txt 2>err.txt </dev/null && rc=0 || rc=$?
    out='' err=$(cat err.txt) last="record --slurm with an sbatch that does: $words"
    expect_code 5
    case $words in yes*) expect_err 'sbatch prints more than 16 MiB' ;; *) expect_err 'sbatch refused the job' ;; esac
    expect_no_file never.stagewright
done
