# solve: the planners' list, a problem's optimum in text and JSON, one without a plan, and files that hold none.
# shellcheck shell=bash
run stagewright solve
expect_code 0
for program in alpa_inter intra_ilp mlp_sharding reshard layerwise merak cephalo comet jigsaw residency chunks buckets owners fill; do expect_out "^$program +"; done
run stagewright solve "$ROOT/tests/data/planners/alpa_head_heavy.json"
expect_code 0
expect_out '"latency": 55360'
run stagewright solve "$ROOT/tests/data/planners/cephalo_authors.json" -o answer.json --json
expect_code 0
expect_json cephalo program
expect_json 34 answer samples 2
expect_that 'the authors'"'"' own figure' grep -q '"time": 342.296848' answer.json
run stagewright solve "$ROOT/tests/data/planners/alpa_none.json"
expect_code 1
expect_err 'no plan fits'
expect_err 'The nearest lacks room for 1 microbatch'
echo '{"program": "alpa"}' >wrong.json
run stagewright solve wrong.json
expect_code 3
expect_err 'wrong.json: it is not a problem'
run stagewright solve none.json
expect_code 3
# the order of broadcasts; pairs that are not possible; another program's library prints nothing into the answer
run stagewright solve "$ROOT/tests/data/planners/reshard_case4.json" --json
expect_code 0
expect_json 1/2 answer optimum
expect_json 15/16 answer greedy
expect_json ON answer proven
expect_json 64 answer plan
run stagewright solve "$ROOT/tests/data/planners/intra_none.json"
expect_code 1
expect_err 'no plan fits'
expect_err 'memory row 0 needs 60 at least, 50 more than the cap of 10'
sed 's/"program":null/"program":"intra_ilp"/' "$ROOT/tests/data/planners/intra_alpa_mlp12_cap60.json" >cap.json
run stagewright solve cap.json --json
if [ "$rc" = 0 ]; then expect_json 186468.84 answer objective; else expect_err 'coinor-libcbc3'; fi
# problems to start from, other numbers, pictures
run stagewright solve --example comet -o comet.json
expect_code 0
expect_out '"program": "comet"'
run stagewright solve comet.json --json
expect_code 0
expect_json 64 answer best
run stagewright solve comet.json --set capacity=320e9 --set between=62.5e9 --json --plot map.svg
expect_code 0
expect_json 8 answer best
expect_that 'the map is drawn' grep -q 'network of a layer' map.svg
run stagewright solve comet.json --set nothing=1
expect_code 2
expect_err "the problem has no number 'nothing'"
run stagewright solve comet.json --set between
expect_code 2
expect_err '--set takes KEY=NUMBER'
for program in alpa_inter intra_ilp mlp_sharding reshard layerwise merak merak:recompute merak:step merak:subpipe cephalo jigsaw; do
    run stagewright solve --example $program --plot plan.csv
    expect_code 0
    expect_that "$program has a picture" [ "$(wc -l <plan.csv)" -gt 3 ]
done
run stagewright solve "$ROOT/tests/data/planners/layer_none.json" --plot none.svg
expect_err 'nothing of .* can be drawn'
run stagewright solve --example none
expect_code 2
expect_err "there is no planner 'none'"

# jobs for Jigsaw from runs with partial backward; what else is refused
for cut in 0,1,2,3 0,2; do
    IFS=, read -ra replicas <<<"$cut"
    run stagewright record -s 1f1b -p 1 -m "$((2 * ${#replicas[@]}))" --replicas "${#replicas[@]}" --cut "$cut" --model layers=4,hidden=32,heads=2,seq=16 --microbatch-size 1 --steps 3 -o partial.stagewright
    expect_code 0
done
run stagewright solve --jobs partial.stagewright#1 --jobs partial.stagewright#2 --save-problem jobs.json --plot jobs.svg --json
expect_code 0
expect_err 'job 0: 4 ranks of run .* of partial and .* of full backward a step'
expect_json jigsaw program
expect_that 'packing partial backward takes no longer than full' python3 -c 'import json; a = json.load(open("out.txt"))["answer"]; assert a["partial"]["packed"] <= a["full"]["packed"]'
expect_that 'the plan is drawn' grep -q 'GPU 3' jobs.svg
run stagewright solve jobs.json --set gpus=6
expect_code 0
run stagewright solve jobs.json --jobs partial.stagewright#1
expect_code 2
expect_err '--jobs is given beside a problem'
run stagewright solve --jobs partial.stagewright#9
expect_code 2
expect_err "no run 9"
# what is missing is said; an example's plan is a layout
run stagewright solve "$ROOT/tests/data/planners/cephalo_none.json"
expect_code 1
expect_err 'Nothing fits: the state is 40, activations of any division leave [0-9.]+ for it at most: [0-9.]+ are missing'
run stagewright solve --example alpa_inter --save-layout example.json
expect_code 0
expect_file example.json
