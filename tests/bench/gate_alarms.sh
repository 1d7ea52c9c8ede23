#!/bin/bash
# How often `compare --gate` raises an alarm between equal recordings, and finds a stage whose work is some 5 % longer:
# of ten microbatches the second stage recomputes one. Real recordings that take turns.
#   gate_alarms.sh PROGRAM [EQUAL PAIRS=200] [SLOW PAIRS=100] [STEPS=250] [CLOCK=virtual] [FOLDER: keeps the recordings]
set -euo pipefail
program=$1 equal=${2:-200} slow=${3:-100} steps=${4:-250} clock=${5:-virtual} folder=${6:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
folder=${folder:-$work}
cat >"$work/slow.csv" <<'CSV'
0F0,0F1,0B0,0F2,0B1,0F3,0B2,0F4,0B3,0F5,0B4,0F6,0B5,0F7,0B6,0F8,0B7,0F9,0B8,0B9
1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3,1F4,1B4,1F5,1R5,1B5,1F6,1B6,1F7,1B7,1F8,1B8,1F9,1B9
CSV
setup=(-p 2 -m 10 --model "layers=2,hidden=32,heads=2,seq=32,vocab=256" --clock "$clock" --steps "$steps" --log-level error)
alarms=0 found=0 named=0 judged=0 slower=0
judge() { "$program" compare "$1" 1 "$2" --gate --json >"$work/verdict.json" 2>"$work/said.txt" || [ $? = 1 ]; }
value() { python3 -c 'import json, sys; gate = json.load(open(sys.argv[1]))["gate"]; print(eval(sys.argv[2]))' "$work/verdict.json" "$1"; }
line() { value '"worse" if gate["worse"] else "same", " ".join("%+.1f(%.1f)" % (100 * one["change"], 100 * one["shows"]) for one in gate["figures"][:3])'; }
for ((i = 1; i <= equal || i <= slow; i++)); do
    file=$folder/$clock.$i.stagewright
    schedules=1f1b,1f1b
    ((i > slow)) || schedules+=,$work/slow.csv
    [ -s "$file" ] || "$program" record -s "$schedules" "${setup[@]}" -o "$file" >/dev/null
    if ((i <= equal)); then
        judge "$file" 2
        judged=$((judged + 1))
        [ "$(value 'gate["worse"]')" = False ] || { alarms=$((alarms + 1)); echo "alarm $i: $(value 'gate["sentence"]')"; }
        echo "equal $i $(line)"
    fi
    if ((i <= slow)); then
        judge "$file" 3
        slower=$((slower + 1))
        [ "$(value 'gate["worse"]')" = False ] || found=$((found + 1))
        [ "$(value 'any(one.startswith("Work of stage 1 (rank 1)") for one in gate["causes"])')" = False ] || named=$((named + 1))
        echo "slow $i $(line)"
    fi
    [ "$folder" != "$work" ] || rm -f "$file"*
done
echo "alarms $alarms of $judged equal pairs; found $found, named $named of $slower slow ones; $steps steps, clock $clock, load $(cut -d' ' -f1-3 /proc/loadavg)"
