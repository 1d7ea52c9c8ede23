# Real daemons for tests: sshd, munge and Slurm. Their packages and the libraries that are missing here are fetched with apt-get download and unpacked
# below $DAEMONS, never installed; they run as the test's own processes, on ports and sockets of their own, and end with it.
# shellcheck shell=bash
#   daemons_fetch PACKAGE… || skip…   prints why it can't
#   sshd_start [NAMESPACE]             a host "test" for $STAGEWRIGHT_SSH, on the loopback address or behind a link of its own; sshd_cut, link_down, link_up
#   slurm_start [NODES]                one node, or so many; SLURM_MORE has more lines of its configuration, SLURM_CREDENTIALS the
#                                      seconds after which a requeued job may start again
#   daemons_stop                       all of them
#   steps_in FILE [RUN]                 steps of a run so far; wait_for FILE STEPS
: "${DAEMONS:=$PWD/daemons}"
daemon_pids=()

# The packages unpacked in $DAEMONS/root; "": they are. Else one line that says why not.
daemons_fetch() {
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || { echo 'apt-get and dpkg are not there'; return 1; }
    mkdir -p "$DAEMONS/debs" "$DAEMONS/root"
    local wanted=() package
    for package in "$@"; do
        [ -e "$DAEMONS/debs/.$package" ] || wanted+=("$package")
    done
    [ ${#wanted[@]} -eq 0 ] || (
        exec 9>"$DAEMONS/debs/.lock"
        flock 9
        cd "$DAEMONS/debs" || exit 1
        for package in "${wanted[@]}"; do
            [ -e ".$package" ] && continue
            timeout 120 apt-get download "$package" >"$package.log" 2>&1 || { echo "apt-get download $package: $(tail -n 1 "$package.log")"; exit 1; }
            dpkg -x "$package"_*.deb "$DAEMONS/root" || { echo "dpkg can't unpack $package"; exit 1; }
            : >".$package"
        done
    )
}

# Runs a program of the unpacked packages with their libraries.
daemon_machine=$(uname -m)-linux-gnu
daemon_libraries() { printf '%s' "$DAEMONS/root/usr/lib/$daemon_machine:$DAEMONS/root/lib/$daemon_machine:$DAEMONS/root/usr/lib/$daemon_machine/slurm-wlm${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; }

# "" or what is missing of a program's libraries
daemon_lacks() { LD_LIBRARY_PATH=$(daemon_libraries) ldd "$1" 2>/dev/null | awk '/not found/ { print $1 }' | sort -u | tr '\n' ' '; }

steps_in() { stagewright sql "$1" "SELECT coalesce(max(steps), 0) FROM runs WHERE run=${2:-1}" 2>/dev/null | tail -1 | tr -d ' '; }
wait_for() { # wait_for FILE STEPS
    local i
    for ((i = 0; i < 300; ++i)); do
        [ "$(steps_in "$1" || echo 0)" -lt "$2" ] 2>/dev/null || return 0
        sleep 0.1
    done
    return 1
}

free_port() {
    local port
    for port in $(shuf -i 20000-29999 -n 50); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
}

# What chooses OpenBLAS's kernels in this shell chooses them in a session as well: both ends are to compute the same.
own_blas() {
    local words
    words=$(env | sed -nE 's/^(OPENBLAS_[A-Z0-9_]+=[A-Za-z0-9_]+)$/\1/p' | tr '\n' ' ')
    [ -z "$words" ] || printf 'SetEnv %s\n' "$words"
}

# sshd on the loopback address with keys made for the test. $SSH_FOLDER has the keys, configuration and log; STAGEWRIGHT_SSH is a program that reads
# that configuration instead of the user's.
sshd_start() {
    local address=127.0.0.1 within=()
    if [ -n "${1:-}" ]; then
        LINK=$1
        address=10.$((RANDOM % 200 + 20)).77.2
        { ip netns add "$1" && ip link add "$1" type veth peer name "$1-there" && ip link set "$1-there" netns "$1" &&
            ip addr add "${address%.2}.1/24" dev "$1" && ip link set "$1" up && ip -n "$1" addr add "$address/24" dev "$1-there" &&
            ip -n "$1" link set "$1-there" up && ip -n "$1" link set lo up; } 2>link.log || { echo "network namespaces: $(cat link.log)"; return 1; }
        within=(ip netns exec "$1")
    fi
    SSH_FOLDER=$PWD/ssh
    SSH_PORT=$(free_port)
    rm -rf "$SSH_FOLDER"
    mkdir -p "$SSH_FOLDER" "$SSH_FOLDER/home"
    chmod 700 "$SSH_FOLDER"
    ssh-keygen -q -t ed25519 -N '' -f "$SSH_FOLDER/host_key"
    ssh-keygen -q -t ed25519 -N '' -f "$SSH_FOLDER/user_key"
    cp "$SSH_FOLDER/user_key.pub" "$SSH_FOLDER/authorized_keys"
    chmod 600 "$SSH_FOLDER/authorized_keys"
    printf '[%s]:%s %s\n' "$address" "$SSH_PORT" "$(cut -d' ' -f1,2 "$SSH_FOLDER/host_key.pub")" >"$SSH_FOLDER/known_hosts"
    cat >"$SSH_FOLDER/sshd_config" <<END
Port $SSH_PORT
ListenAddress $address
HostKey $SSH_FOLDER/host_key
AuthorizedKeysFile $SSH_FOLDER/authorized_keys
PidFile $SSH_FOLDER/sshd.pid
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
LogLevel ERROR
$(own_blas)
END
    cat >"$SSH_FOLDER/config" <<END
Host test
    HostName $address
    Port $SSH_PORT
    User $(id -un)
    IdentityFile $SSH_FOLDER/user_key
    IdentitiesOnly yes
    UserKnownHostsFile $SSH_FOLDER/known_hosts
    StrictHostKeyChecking yes
Host stranger
    HostName $address
    Port $SSH_PORT
    IdentityFile $SSH_FOLDER/user_key
    UserKnownHostsFile /dev/null
    StrictHostKeyChecking yes
Host nokey
    HostName $address
    Port $SSH_PORT
    IdentityFile $SSH_FOLDER/host_key
    IdentitiesOnly yes
    UserKnownHostsFile $SSH_FOLDER/known_hosts
END
    printf '#!/bin/sh\nexec ssh -F %s "$@"\n' "$SSH_FOLDER/config" >"$SSH_FOLDER/ssh"
    chmod +x "$SSH_FOLDER/ssh"
    export STAGEWRIGHT_SSH=$SSH_FOLDER/ssh
    # root's sshd wants a user and a folder of its own: it has them in a mount namespace, the system's stay as they are
    local apart=()
    if [ "$(id -u)" = 0 ]; then
        { cat /etc/passwd; grep -q '^sshd:' /etc/passwd || echo 'sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin'; } >"$SSH_FOLDER/passwd"
        # shellcheck disable=SC2016
        apart=(unshare --mount sh -c 'mount --bind "$1/passwd" /etc/passwd && mount -t tmpfs tmpfs /run && mkdir /run/sshd && shift && exec "$@"' sh "$SSH_FOLDER")
        unshare --mount true 2>/dev/null || { echo 'as root, sshd needs mount namespaces'; return 1; }
    fi
    LD_LIBRARY_PATH=$(daemon_libraries) "${within[@]}" "${apart[@]}" "$DAEMONS/root/usr/sbin/sshd" -D -e -f "$SSH_FOLDER/sshd_config" 2>>"$SSH_FOLDER/sshd.log" &
    SSHD_PID=$!
    daemon_pids+=("$SSHD_PID")
    local i
    for ((i = 0; i < 50; ++i)); do
        if "$STAGEWRIGHT_SSH" -o BatchMode=yes test true 2>"$SSH_FOLDER/first.log"; then return 0; fi
        sleep 0.1
    done
    echo "sshd does not answer: $(cat "$SSH_FOLDER/first.log" "$SSH_FOLDER/sshd.log")"
    return 1
}

link_down() { ip link set "$LINK" down; }
link_up() { ip link set "$LINK" up; }

# Ends every connection to it that is open; returns 1 where there was none.
sshd_cut() {
    local pid cut=1
    for pid in $(pgrep -P "$SSHD_PID"); do kill -9 "$pid" 2>/dev/null && cut=0; done
    return $cut
}

# Slurm on this computer as one node, or as so many, NAME, NAME-2 …: munged, slurmctld and slurmd, without accounting. $SLURM_FOLDER has its configuration and logs; the client programs
# that it puts on PATH find it.
slurm_start() {
    [ "$(id -u)" = 0 ] || { echo 'Slurm is started as root only'; return 1; }
    local root=$DAEMONS/root program lacks i
    for program in "$root"/usr/sbin/{munged,slurmctld-wlm,slurmd-wlm,slurmstepd-wlm} "$root/usr/bin/srun"; do
        lacks=$(daemon_lacks "$program")
        [ -z "$lacks" ] || { echo "$(basename "$program") lacks $lacks"; return 1; }
    done
    SLURM_FOLDER=$(mktemp -d /tmp/stagewright-slurm-XXXXXX) # a socket's path is short
    chmod 755 "$SLURM_FOLDER"
    mkdir -p "$SLURM_FOLDER"/{spool,state,bin}
    local port node nodes name
    port=$(free_port)
    node=$(hostname -s)
    nodes=("$node")
    for ((i = 2; i <= ${1:-1}; ++i)); do nodes+=("$node-$i"); done
    dd if=/dev/urandom of="$SLURM_FOLDER/munge.key" bs=1024 count=1 2>/dev/null
    chmod 600 "$SLURM_FOLDER/munge.key"
    LD_LIBRARY_PATH=$(daemon_libraries) "$root/usr/sbin/munged" --foreground --force --key-file="$SLURM_FOLDER/munge.key" --socket="$SLURM_FOLDER/munge" \
        --pid-file="$SLURM_FOLDER/munged.pid" --log-file="$SLURM_FOLDER/munged.log" --seed-file="$SLURM_FOLDER/munge.seed" >"$SLURM_FOLDER/munged.out" 2>&1 &
    daemon_pids+=($!)
    cat >"$SLURM_FOLDER/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$SLURM_FOLDER/munge,cred_expire=${SLURM_CREDENTIALS:-120}
CredType=cred/munge
PluginDir=$root/usr/lib/$daemon_machine/slurm-wlm
StateSaveLocation=$SLURM_FOLDER/state
SlurmdSpoolDir=$SLURM_FOLDER/spool/%n
SlurmctldPidFile=$SLURM_FOLDER/slurmctld.pid
SlurmdPidFile=$SLURM_FOLDER/slurmd-%n.pid
SlurmctldLogFile=$SLURM_FOLDER/slurmctld.log
SlurmdLogFile=$SLURM_FOLDER/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,sched_min_interval=100000,batch_sched_delay=0
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
KillWait=5
MinJobAge=300
InactiveLimit=0
$(for name in "${nodes[@]}"; do echo "NodeName=$name NodeHostname=$node NodeAddr=127.0.0.1 Port=$(free_port) CPUs=4 RealMemory=1000"; done)
PartitionName=main Nodes=$(IFS=,; echo "${nodes[*]}") Default=YES MaxTime=INFINITE OverTimeLimit=0 State=UP PriorityTier=1
${SLURM_MORE:-}
END
    for program in sbatch squeue sacct scontrol scancel srun sinfo; do
        printf '#!/bin/sh\nexport SLURM_CONF=%s LD_LIBRARY_PATH=%s\nexec %s "$@"\n' "$SLURM_FOLDER/slurm.conf" "$(daemon_libraries)" "$root/usr/bin/$program" >"$SLURM_FOLDER/bin/$program"
        chmod +x "$SLURM_FOLDER/bin/$program"
    done
    export SLURM_CONF=$SLURM_FOLDER/slurm.conf PATH=$SLURM_FOLDER/bin:$PATH
    LD_LIBRARY_PATH=$(daemon_libraries) "$root/usr/sbin/slurmctld-wlm" -D -i -f "$SLURM_CONF" >"$SLURM_FOLDER/slurmctld.out" 2>&1 &
    daemon_pids+=($!)
    printf '#!/bin/sh\nexport LD_LIBRARY_PATH=%s\nexec %s "$@"\n' "$(daemon_libraries)" "$root/usr/sbin/slurmstepd-wlm" >"$SLURM_FOLDER/bin/slurmstepd"
    chmod +x "$SLURM_FOLDER/bin/slurmstepd"
    # a session of its own: it ends what is in its group
    for name in "${nodes[@]}"; do
        mkdir -p "$SLURM_FOLDER/spool/$name"
        LD_LIBRARY_PATH=$(daemon_libraries) "$root/usr/sbin/slurmd-wlm" -D -f "$SLURM_CONF" -N "$name" -d "$SLURM_FOLDER/bin/slurmstepd" >"$SLURM_FOLDER/slurmd-$name.out" 2>&1 &
        daemon_pids+=($!)
    done
    for ((i = 0; i < 150; ++i)); do
        [ "$(sinfo -h -N -p main -o %T 2>/dev/null | grep -c '^idle')" = ${#nodes[@]} ] && return 0
        sleep 0.1
    done
    echo "Slurm does not come up: $(sinfo 2>&1 | tail -n 2) $(tail -qn 2 "$SLURM_FOLDER"/*.log "$SLURM_FOLDER"/*.out 2>/dev/null)"
    return 1
}

daemons_stop() {
    local pid
    if [ -n "${SSHD_PID:-}" ]; then sshd_cut || true; fi
    for pid in "${daemon_pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${daemon_pids[@]}"; do wait "$pid" 2>/dev/null || true; done
    daemon_pids=()
    if [ -n "${LINK:-}" ]; then
        ip link del "$LINK" 2>/dev/null || true
        ip netns del "$LINK" 2>/dev/null || true
        LINK=''
    fi
    if [ -n "${SLURM_FOLDER:-}" ]; then rm -rf "$SLURM_FOLDER"; fi
}
