# PyTorch as the engine on two nodes of a real Slurm: srun starts each rank on its node. A script stands in for the interpreter, as in torch_engine.sh.
# shellcheck shell=bash
export HOME=$PWD/home XDG_CONFIG_HOME='' XDG_STATE_HOME=''
mkdir -p home
# shellcheck source=../support/daemons.bash
source "$SOURCE/../support/daemons.bash"
trap daemons_stop EXIT
if ! why=$(daemons_fetch slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libmunge2) || ! slurm_start 2 >start.log 2>&1; then
    echo "skipped: a queue needs Slurm's daemons: ${why:-$(cat start.log)}"
    exit 77
fi
tiny=(--model 'layers=4,hidden=16,heads=2,seq=8' --microbatch-size 1 -p 4 -m 4)
run stagewright record -s 1f1b "${tiny[@]}" --steps 2 --warmup 0 --clock virtual -o own.stagewright
expect_code 0
run stagewright export own.stagewright --format kineto -o canned
expect_code 0
cat >python3 <<'FAKE'
#!/usr/bin/env bash
if [ "${1##*/}" = ask.py ]; then
    echo '{"python": "3.13.5", "torch": "2.6.0", "gloo": true, "nccl": false, "gpus": 0}'
    exit
fi
say() { printf '{"event": "%s", "rank": %s, %s}\n' "$1" "$RANK" "$2"; }
[ -s job.json ] || { echo "no job in $PWD"; exit 9; }
echo "$SLURMD_NODENAME $LOCAL_RANK of $LOCAL_WORLD_SIZE, $WORLD_SIZE in all, to $MASTER_ADDR by ${GLOO_SOCKET_IFNAME:-any}${IN_STEP:+, in a step of its own}${IN_CONTAINER:+, in a container}" >"place$RANK"
say ready '"torch": "2.6.0+fake", "python": "3.13.5", "device": "cpu"'
[ -z "$FAKE_DEAD" ] || [ "$RANK" != 3 ] || { echo 'out of luck'; kill -9 $$; }
if [ "$RANK" = 3 ]; then
    for step in 0 1 2; do say step "\"step\": $step, \"loss\": $((5 - step)).5, \"step_time_ns\": 1000000"; done
fi
mkdir -p traces
cp "$FAKE_TRACES/rank$RANK.pt.trace.json" traces/
for step in 1 2; do say traced "\"step\": $step"; done
[ -z "$FAKE_DEAD" ] || sleep 60
say 'done' '"steps": 3, "traced": 2'
FAKE
chmod +x python3
export FAKE_TRACES=$PWD/canned
node=$(hostname -s)

torch=(record -s 1f1b "${tiny[@]}" --engine torch --python "$PWD/python3" --steps 2 --warmup 1)
run stagewright "${torch[@]}" --slurm nodes=2 -o two.stagewright
expect_code 0
run stagewright runs two.stagewright
expect_out '1f1b'
mapfile -t places < <(find home -name 'place[0-9]' | sort)
expect_same "$(cat "${places[@]}")" "$node 0 of 2, 4 in all, to $node by any
$node 1 of 2, 4 in all, to $node by any
$node-2 0 of 2, 4 in all, to $node by any
$node-2 1 of 2, 4 in all, to $node by any"

# options of srun are every rank's, on one node too, and the interpreter is looked for under it
run stagewright "${torch[@]}" --slurm nodes=1 --srun export=ALL,IN_STEP=yes -o one.stagewright
expect_code 0
expect_that 'under srun' test "$(cat $(find home -name 'place[0-9]') | grep -c 'in a step of its own')" = 4

# in a container of Apptainer, replaced by a script here: the interpreter and each rank, which see the job's folder
mkdir fake
cat >fake/apptainer <<FAKE
#!/bin/sh
echo "\$@" >>$PWD/apptainer.calls
while [ "\$2" = --bind ]; do shift 2; done
shift 2
IN_CONTAINER=yes exec "\$@"
FAKE
chmod +x fake/apptainer
run env PATH="$PWD/fake:$PATH" "$STAGEWRIGHT" "${torch[@]}" --container image.sif --interface lo --slurm nodes=2 -o boxed.stagewright
expect_code 0
expect_that 'in a container' test "$(cat $(find home -name 'place[0-9]') | grep -c 'by lo, in a container')" = 4
expect_same "$(grep -c -- 'exec --bind /[^ ]*/pytorch image.sif .*driver.py' apptainer.calls)" 4
run stagewright report boxed.stagewright
expect_out 'network +interface lo.*NCCL_SOCKET_IFNAME=lo'
run stagewright "${torch[@]}" --container image.sif -o none.stagewright
expect_code 4
expect_err 'apptainer is not on PATH'

# a rank that dies on the other node is named, and no other goes on
FAKE_DEAD=yes run stagewright "${torch[@]}" --slurm nodes=2 -o dead.stagewright
expect_code 5
expect_err 'rank 3 .*out of luck|rank 3 '
expect_same "$(squeue -h)" ''
