# A host that wants to harm: messages and events nested without end or of wrong types are an error, or are left out; nothing crashes.
# shellcheck shell=bash
command -v python3 >/dev/null || { echo 'skipped: the host is a Python program'; exit 77; }
export XDG_CONFIG_HOME=$PWD/config XDG_STATE_HOME=$PWD/state STAGEWRIGHT_SSH=$SOURCE/hostile_host.py
VERSION=$(stagewright --version | cut -d " " -f 2)
export VERSION SENDS
run stagewright hosts add h me@localhost
expect_code 0
job() {
    rm -rf state out.stagewright*
    mkdir -p state/stagewright/jobs/h-1
    printf '{"id":"h-1","host":"h","verb":"record","arguments":[],"file":"%s/out.stagewright","created_unix_ms":1,"slurm":false,"slurm_job":"","state":"running","detail":"","exit_code":null,"steps":0,"steps_asked":0,"runs":[]}' \
        "$PWD" >state/stagewright/jobs/h-1/job.json
}
for SENDS in all-text all-list status-number code-text error-text error-wrong message-deep message-deep-object message-list message-text; do
    job
    run stagewright hosts fetch h-1
    expect_that "$SENDS is an error" test "$rc" -ge 2 -a "$rc" -le 5
    case $SENDS in error-*) ;; *) expect_err 'what the host sends is damaged' ;; esac
done
for SENDS in event-deep event-what-deep event-run-deep event-types event-numbers; do
    for verb in 'fetch h-1' 'attach h-1 --progress jsonl' 'attach h-1 --json'; do
        job
        # shellcheck disable=SC2086
        run stagewright hosts $verb
        expect_code 5 # what it sent is passed over; its job ended without a step
        expect_err 'ended without a step'
    done
    run stagewright hosts jobs # and what is kept of it
    expect_code 0
done
# the lists of hosts and jobs are read as carefully
nested() { printf '%*s' 200000 '' | tr ' ' "$1"; }
printf '{"hosts":%s%s}' "$(nested '[')" "$(nested ']')" >config/stagewright/hosts.json
run stagewright hosts list
expect_code 3
expect_err 'hosts.json: it is not JSON, or nested too deep'
printf '{"id":"h-1","runs":%s%s}' "$(nested '[')" "$(nested ']')" >state/stagewright/jobs/h-1/job.json
run stagewright hosts jobs
expect_that 'no crash' test "$rc" -lt 128
