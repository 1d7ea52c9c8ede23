# Golden figures at unit costs (closed forms: (m+p-1)T for GPipe and 1F1B, mT+(p-1)T/v interleaved, mT+(p-1)(F+I-W) for
# ZB-H1; ../shared/specs/schedules.md, section 7, has the same), complete JSON, text, runs stored and costs taken from them.
# shellcheck shell=bash
keys='schedule provenance clock ranks stages microbatches time_unit makespan span makespan_ns span_ns bubble_fraction
      bubble_rate_span peak_activation peak_activation_bytes idle_by_cause busy_by_cause overlap critical_path loss step_time_ns
      weight_bytes hung cycle victims straggler_rank gradient_error deviation'
causes='warmup drain dependency transfer peer_wait head_of_line memory order imbalance straggler microbatch recompute_wait reload_wait launch collective'

golden() { # golden SCHEDULE RANKS MICROBATCHES CHUNKS MAKESPAN SPAN PEAK0 PEAKLAST
    run stagewright simulate -s "$1" -p "$2" -m "$3" --chunks "$4" --json --log-level error
    expect_code 0
    expect_json "$5" makespan
    expect_json "$6" span
    expect_json "$7" peak_activation 0
    expect_json "$8" peak_activation $(($2 - 1))
}
golden gpipe 4 8 auto 33.0 33.0 8.0 8.0
golden gpipe 2 4 auto 15.0 15.0 4.0 4.0
golden 1f1b 4 8 auto 33.0 33.0 4.0 1.0
golden 1f1b 4 16 auto 57.0 57.0 4.0 1.0
golden interleaved-1f1b 4 8 2 28.5 28.5 5.5 2.5
golden interleaved-1f1b 2 8 4 24.75 24.75 2.25 1.75
golden zb-h1 4 8 auto 27.0 27.0 4.0 4.0

run stagewright simulate -s 1f1b --json
# shellcheck disable=SC2086
expect_keys . $keys
# shellcheck disable=SC2086
expect_keys idle_by_cause $causes
expect_keys overlap comm_time hidden_time exposed_time
expect_json rank_share time_unit
expect_json simulated provenance
expect_json model clock
expect_json null loss
expect_json null peak_activation_bytes
expect_json OFF hung
expect_json 6.0 idle_by_cause warmup
expect_json 12.0 idle_by_cause drain
idle=0
for cause in $causes; do idle=$(awk -v a="$idle" -v b="$(json idle_by_cause "$cause")" 'BEGIN { print a + b }'); done
expect_same "$idle" "$(json idle | awk '{ print $1 + 0 }')"
expect_same "$idle" 36

# 1F1B pays the latency once per p microbatches: 3(m+p-1)+c(2(p-1)m/p+2(p-2)), F=1, B=2
run stagewright simulate -s 1f1b -p 4 -m 8 --comm 0.5 --json
expect_json 41.0 makespan
run stagewright simulate -s gpipe -p 4 -m 8 --comm 2 --json
expect_json 45.0 makespan
# (p-1)(F+I-W) with unequal costs
run stagewright simulate -s zb-h1 -p 4 -m 8 --costs F=2,I=3,W=1 --json
expect_json 60.0 makespan

# text: figures, picture, causes
run stagewright simulate -s zb-h1
expect_code 0
expect_quiet_err
expect_out '^step time +27 units'
expect_out '^bubble ratio +11\.1 %'
expect_no_out $'\033'
run stagewright simulate -s gpipe
expect_out 'F'
expect_out 'idle +36 '

# a CSV can replace a name
stagewright schedules zb-h1 --csv >mine.csv
run stagewright simulate -s mine.csv --json
expect_code 0
expect_json 27.0 makespan
expect_json mine.csv schedule

# limits
run stagewright simulate -s gpipe --memory-limit 4
expect_code 1
expect_err 'over the limit'
run stagewright simulate -s 1f1b --memory-limit 4
expect_code 0
run stagewright simulate -s 1f1b --memory-limit 4,3,2,1
expect_code 0
run stagewright simulate -s 1f1b --memory-limit 4,3,1,1
expect_code 1
expect_err 'rank 2 holds 2 at its peak, over the limit of 1'
run stagewright simulate -s 1f1b --memory-limit 4,3
expect_code 2
expect_err '2 limits for 4 ranks'
run stagewright simulate -s 1f1b --memory-limit 64MB
expect_code 2

# a schedule that can't end
printf '0F0,0B0\n1B0,1F0\n' >hung.csv
run stagewright simulate -s hung.csv --json
expect_code 1
# shellcheck disable=SC2086
expect_keys . $keys
expect_json null makespan

# stored, reported, and used as costs
run stagewright simulate -s 1f1b -o s.stagewright --json
expect_code 0
expect_json 1 run
run stagewright simulate -s zb-h1 -o s.stagewright
expect_code 0
expect_err 's.stagewright#2'
run stagewright report s.stagewright 1 --json
expect_code 0
expect_json 33.0 makespan
expect_json rank_share time_unit
run stagewright simulate -s 1f1b --costs-from s.stagewright#2 --json
expect_code 0
expect_json 33.0 makespan
run stagewright simulate -s interleaved-1f1b --costs-from s.stagewright#2
expect_code 2
expect_err '4 stages.*8'
run stagewright compare s.stagewright --json
expect_code 0
expect_keys . a b headline metrics change why ops
# the change is split exactly: 4 ranks × −6 shares; a share has no nanoseconds
expect_json -6.0 change makespan_delta
expect_json 0.0 change unexplained
expect_json rank_share time_unit
expect_keys change makespan_delta_ns busy_delta apart_delta idle_delta_by_cause unexplained_ns

# A stored run keeps how its messages travelled: levers, what-ifs and residuals start from its own figure.
run stagewright simulate -s interleaved-1f1b -p 8 -m 8 --chunks 2 --lower pytorch --channels one -o one.stagewright --json
expect_code 0
expect_json 60.0 makespan
expect_json ON one_stream
run stagewright report one.stagewright --residuals --what-if channels=shared --json
expect_json 60.0 levers_baseline makespan
expect_json 34.5 what_if 0 makespan_after
expect_json 0.0 residuals step_error
run stagewright simulate -s interleaved-1f1b -p 2 -m 4 --chunks 2 --lower pytorch --sends rendezvous --receives blocking -o one.stagewright --json
expect_json 20.0 levers_baseline makespan
expect_json sends levers 0 lever
expect_json 13.5 levers 0 makespan
run stagewright compare one.stagewright 2 2 --json
expect_json 20.0 ladder 0 makespan

# A link carries what it carries: eight messages of 411 MB over 1 GB/s take 3.29 s, and back as long.
cat >wide.json <<'END_OF_COSTS'
{"format": "stagewright-costs", "version": 1, "source": "uniform", "duration_ns": {"F": [90000000, 60000000], "B": [180000000, 120000000]},
 "stage_bytes": [{"boundary": 411000000}, {}]}
END_OF_COSTS
run stagewright simulate -s gpipe -p 2 -m 8 --costs wide.json --link 5us,1GB/s --json
expect_json 7026010000 makespan_ns
expect_json ON links_shared
run stagewright simulate -s gpipe -p 2 -m 8 --costs wide.json --link 5us,1GB/s --channels 0 --json
expect_json 3162010000 makespan_ns
run stagewright simulate -s gpipe --channels two
expect_code 2
expect_err 'shared, one, 0 or a number'

# A memory cap reaches the schedule that is generated for one.
run stagewright simulate -s zb-auto --memory-limit 2 --json
expect_json 2.0 peak_activation 0
expect_quiet_err
